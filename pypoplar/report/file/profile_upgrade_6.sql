-- What a profile file of version 6 lacks, laid over its tables: what tiles did in single executions, which are all told as means.

CREATE TEMP VIEW execution AS SELECT rowid, *, 0 AS recorded, 0 AS unrecorded FROM main.execution;
CREATE TEMP TABLE recorded_execution (run, step, execution, tile_profile);
