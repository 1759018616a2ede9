"""Files and messages after a run is killed, interrupted or given damaged input."""
