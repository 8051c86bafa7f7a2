-- What a profile file of version 3 lacks, laid over its tables: NULL where it is not known.
-- A view stands in place of the table of its name, for this connection alone; the file stays as it is.

CREATE TEMP VIEW target AS SELECT rowid, *, 0.0 AS link_bytes_per_cycle FROM main.target;
CREATE TEMP VIEW run_step AS SELECT rowid, *, NULL AS copy_cycles FROM main.run_step;
CREATE TEMP VIEW vertex_type AS SELECT rowid, *, '' AS precision FROM main.vertex_type;
CREATE TEMP TABLE tile_vertex (tile INTEGER, vertex_type INTEGER, vertices INTEGER, bytes INTEGER);
CREATE TEMP TABLE slowest_vertex (step INTEGER, vertex_type TEXT, vertices INTEGER, field TEXT, least INTEGER, most INTEGER);
CREATE TEMP TABLE line_profile (compiled);
CREATE TEMP TABLE codelet (codelet INTEGER PRIMARY KEY, vertex_type, workers, blocks);
CREATE TEMP TABLE codelet_line (codelet, place, function, file, line, text);
CREATE TEMP TABLE block_line (codelet, block, place, slots, bound);
CREATE TEMP TABLE vertex_group (vertex_group INTEGER PRIMARY KEY, compute_set, codelet, vertices, slots);
CREATE TEMP TABLE block_execution (vertex_group, block, executions);
CREATE TEMP TABLE longest_vertex (longest_vertex INTEGER PRIMARY KEY, compute_set, vertex_type, tile, cycles);
CREATE TEMP TABLE longest_vertex_field (longest_vertex, name, elements, field_rows);
