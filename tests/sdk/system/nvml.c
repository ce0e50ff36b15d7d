/* Stands in for NVIDIA's driver library where there is no GPU: three devices, the last of which answers nothing and
   the second of which has no counters of its own. Names and layouts: docs.nvidia.com/deploy/nvml-api. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
enum { OK = 0, NOT_SUPPORTED = 3, UNKNOWN = 999 };
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned version, supported; } support;
typedef struct { char *short_name, *long_name, *unit; } info;
typedef struct { unsigned id; result status; double value; info about; } metric;
typedef struct { unsigned version, count; void *first, *second; metric metrics[333]; } metrics;

static unsigned index_of(void *device) { return (unsigned)(uintptr_t)device - 1; }

result nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
result nvmlInit_v2(void) { return OK; }
result nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(result code) { (void)code; return "a made-up error"; }
result nvmlDeviceGetCount_v2(unsigned *count) { *count = getenv("NO_GPUS") ? 0 : 3; return OK; }
result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(uintptr_t)(index + 1); return OK; }
result nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
  if (index_of(device) == 2) return UNKNOWN;
  rates->gpu = 40 + index_of(device);
  rates->memory = 1;
  return OK;
}
result nvmlDeviceGetMemoryInfo(void *device, memory_info *memory) {
  if (index_of(device) == 2) return UNKNOWN;
  memory->total = 1000;
  memory->used = 250 * (index_of(device) + 1);
  memory->free = memory->total - memory->used;
  return OK;
}
result nvmlGpmQueryDeviceSupport(void *device, support *answer) { answer->supported = index_of(device) == 0; return OK; }
static unsigned samples;
result nvmlGpmSampleAlloc(void **sample) { *sample = malloc(sizeof(unsigned)); return OK; }
result nvmlGpmSampleFree(void *sample) { free(sample); return OK; }
result nvmlGpmSampleGet(void *device, void *sample) { (void)device; *(unsigned *)sample = ++samples; return OK; }
result nvmlGpmMetricsGet(metrics *query) {
  if (*(unsigned *)query->first >= *(unsigned *)query->second) return UNKNOWN;
  for (unsigned slot = 0; slot < query->count; slot++) {
    query->metrics[slot].status = OK;
    query->metrics[slot].value = query->metrics[slot].id + 0.5;
  }
  return OK;
}
