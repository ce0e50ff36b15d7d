#!/bin/bash
# A training with automatic captures, as a job of Slurm: sbatch slurm.sh
#SBATCH --job-name=trainer
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
set -u

# All nodes see this directory. The program calls machinelearning_run(os.environ["RUN"], on_demand_xprof=True): each job
# has a run of its own, so that the captures do not follow one that ended before.
export MLDIAG_STORAGE="${MLDIAG_STORAGE:-$HOME/mldiagnostics}"
export RUN="trainer-${SLURM_JOB_ID:-0}"

# In the background, on the first node: it waits for the run, and ends with it.
mldiag capture "$RUN" --every 6h --trigger StepTimeRise --max-per-day 4 &
captures=$!

srun python train.py
status=$?

kill -TERM "$captures" 2>/dev/null
wait "$captures"
exit "$status"
