#!/bin/bash
# The GPT on two nodes of Slurm: sbatch slurm.sh. All tasks are one run, named by the job; a requeued job continues it.
#SBATCH --job-name=gpt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --signal=TERM@60
set -eu

# All nodes see these directories.
export MLDIAG_STORAGE="${MLDIAG_STORAGE:-$HOME/mldiagnostics}"
export CHECKPOINTS="${CHECKPOINTS:-$HOME/checkpoints/gpt}"

JAX_COORDINATOR_ADDRESS="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1):8476"
export JAX_COORDINATOR_ADDRESS JAX_PROCESS_COUNT="$SLURM_NTASKS"

srun bash -c 'JAX_PROCESS_ID=$SLURM_PROCID exec python train.py'
