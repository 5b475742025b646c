"""What the console draws: pure helpers behind the template tags, imported by nobody else."""
