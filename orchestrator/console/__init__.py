"""The pages of runs: list, detail with its tabs, first page, state of the deployment."""
