"""What a program would cost, in short: predictions from reports, sweeps over cases, and scripts that are stopped for one."""
