-- What a profile file of version 5 lacks, laid over its tables: none of it is known.

CREATE TEMP TABLE host_link (write_bytes_per_cycle, read_bytes_per_cycle, sync_cycles);
CREATE TEMP TABLE vertex_type_element (vertex_type, type);
CREATE TEMP TABLE loop_hint (codelet, place, first_block, end_block, reason, saved, fields);
