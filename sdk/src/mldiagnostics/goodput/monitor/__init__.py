"""The monitor of a job: a process of its own that reads the job's log, and how the training process speaks with it.

The training process only starts it and tells it when to end (`uploading`, `process`); all reading, computing and
exporting is done there (`__main__`, `worker`). They speak in lines of JSON over one socket, its standard input.
"""
