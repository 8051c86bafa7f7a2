-- What a profile file of version 8 lacks, laid over its tables: how IPUs are linked, which was a ladder
-- of all, and what transfers from and to the host wait for.

CREATE TEMP TABLE wiring (topology, domain_size, gateway_bytes_per_cycle, gateway_link_bytes_per_cycle);
CREATE TEMP TABLE host_limit (step, name);
