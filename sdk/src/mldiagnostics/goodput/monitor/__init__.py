"""The monitor of a job: a process that reads the job's log and exports goodput.

The training process only starts and stops it (`uploading`, `process`). The monitor process reads, computes and exports
(`__main__`, `worker`). They exchange lines of JSON over one socket, the monitor's standard input.
"""
