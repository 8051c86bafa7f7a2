-- What a profile file of version 6 lacks, laid over its tables: what tiles did in single executions, which are all told
-- as means, and where variables begin in the memory of tiles.

CREATE TEMP VIEW execution AS SELECT rowid, *, 0 AS recorded, 0 AS unrecorded FROM main.execution;
CREATE TEMP VIEW variable_tile AS SELECT rowid, *, NULL AS offset, NULL AS span FROM main.variable_tile;
CREATE TEMP TABLE recorded_execution (run, step, execution, tile_profile);
