-- What a profile file of version 7 lacks, laid over its tables: clocks of several IPUs, which all had one.

CREATE TEMP VIEW trace_event AS SELECT rowid, *, 0 AS ipu FROM main.trace_event;
CREATE TEMP TABLE run_ipu (run, ipu, waiting_cycles);
CREATE TEMP TABLE run_step_ipu (run, step, ipu, sync_cycles, exchange_cycles, copy_cycles, global_exchange_cycles,
    host_exchange_cycles, compute_cycles, waiting_cycles);
