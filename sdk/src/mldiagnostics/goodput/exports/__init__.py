"""What a monitor tells of a job, and where to: one observation, told in the words of each place."""
