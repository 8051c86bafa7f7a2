-- The tables of a profile file, profile.pop. docs/profile-file.md says the same in prose, with queries to try.
-- Cycles are tile cycles, but those of vertex types are worker slots, of which a tile has one in turn for each of its workers; sizes are bytes, steps are numbers of static steps, tiles are numbered over all IPUs.
-- Rows of a table stand in the report's order. "by tile" tables have no row for a tile that has nothing.

CREATE TABLE meta (  -- About the file: name, created (ISO 8601), poplar_version; failed_runs, as JSON, if runs failed.
    key TEXT PRIMARY KEY,  -- what is said
    value TEXT NOT NULL  -- in text
) WITHOUT ROWID;

CREATE TABLE target (  -- The machine that the program was compiled for: one row.
    architecture TEXT NOT NULL,  -- such as "ipu2"
    system TEXT NOT NULL,  -- name of the preset, such as "bow"
    timing TEXT NOT NULL,  -- whom cycles follow: "model", the vendor's IPU Model, or "hardware", measurements
    ipus INTEGER NOT NULL,  -- IPUs of all replicas
    tiles_per_ipu INTEGER NOT NULL,  -- tiles of an IPU
    bytes_per_tile INTEGER NOT NULL,  -- memory of a tile
    clock_frequency REAL NOT NULL,  -- Hz
    worker_contexts INTEGER NOT NULL,  -- worker threads of a tile
    replicas INTEGER NOT NULL,  -- replicas of the graph
    memory_bytes_per_cycle INTEGER NOT NULL,  -- most bytes that a tile loads and stores in a cycle, 0 if not known
    link_bytes_per_cycle REAL NOT NULL  -- most bytes between two IPUs in a cycle, both ways together, 0 if not known
);

CREATE TABLE wiring (  -- How the IPUs are linked, one row.
    topology TEXT NOT NULL,  -- of the links of a domain: "mesh", a ladder, or "torus", one whose ends are joined
    domain_size INTEGER NOT NULL,  -- IPUs that links join; messages to others go by gateways
    gateway_bytes_per_cycle REAL NOT NULL,  -- most bytes between an IPU and its gateway in a cycle, both ways together, 0 if not known
    gateway_link_bytes_per_cycle REAL NOT NULL  -- the same between the gateways of two domains
);

CREATE TABLE host_link (  -- The link between the machine and its host, one row.
    write_bytes_per_cycle REAL NOT NULL,  -- bytes that go to the device in a cycle
    read_bytes_per_cycle REAL NOT NULL,  -- bytes that come from it in a cycle
    sync_cycles REAL NOT NULL  -- cycles that each transfer takes besides
);

CREATE TABLE peak_flops (  -- Ceilings of the roofline.
    unit TEXT NOT NULL,  -- name of the arithmetic unit
    flops_per_cycle REAL NOT NULL  -- floating-point operations of a tile in a cycle
);

CREATE TABLE engine_option (  -- Engine options that were set.
    name TEXT NOT NULL,  -- such as "pypoplar.threads"
    value TEXT NOT NULL  -- as text
);

CREATE TABLE graph (  -- How large the graph is, as far as its programs use it: one row.
    vertices INTEGER NOT NULL,  -- number of vertices
    edges INTEGER NOT NULL,  -- number of connections of their fields
    variables INTEGER NOT NULL,  -- number of variables
    compute_sets INTEGER NOT NULL  -- number of compute sets
);

CREATE TABLE tile (  -- The tiles.
    tile INTEGER PRIMARY KEY,  -- number, from 0
    gaps INTEGER NOT NULL,  -- bytes that alignment leaves empty
    always_live INTEGER,  -- bytes whose memory is never used for anything else; NULL if not known
    not_always_live INTEGER  -- bytes of the rest, at the step where it is largest; NULL if not known
);

CREATE TABLE memory_category (  -- What tile memory is used for.
    category INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL  -- in snake_case: "variables", "code"
);

CREATE TABLE tile_memory (  -- Memory by tile.
    category INTEGER NOT NULL REFERENCES memory_category,  -- what it is used for
    tile INTEGER NOT NULL REFERENCES tile,  -- where
    bytes INTEGER NOT NULL,  -- bytes in use, without gaps
    PRIMARY KEY (category, tile)
) WITHOUT ROWID;

CREATE TABLE vertex_memory_by_category (  -- Memory of all vertices.
    name TEXT NOT NULL,  -- such as "edge_pointers"
    bytes INTEGER NOT NULL  -- on all tiles together
);

CREATE TABLE vertex_memory_by_type (  -- Memory of all vertices.
    name TEXT NOT NULL,  -- of the vertex type
    bytes INTEGER NOT NULL  -- on all tiles together
);

CREATE TABLE vertex_type (  -- The vertex types of the program.
    vertex_type INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL,  -- such as "popops::Reduce<float>"
    instances INTEGER NOT NULL,  -- its vertices in the program
    memory INTEGER NOT NULL,  -- bytes of their state and pointers
    precision TEXT NOT NULL  -- of its elements: "half" if any are, else "float" if any are; empty if none are, or it is not known
);

CREATE TABLE tile_vertex (  -- The vertices of the program, by tile and type; no rows where they are not known by tile.
    tile INTEGER NOT NULL REFERENCES tile,  -- where
    vertex_type INTEGER NOT NULL REFERENCES vertex_type,  -- the vertex type
    vertices INTEGER NOT NULL,  -- how many
    bytes INTEGER NOT NULL,  -- of their state and pointers there
    PRIMARY KEY (tile, vertex_type)
) WITHOUT ROWID;

CREATE TABLE vertex_type_element (  -- Types of the elements that fields of vertex types are connected to, with vectors and lists.
    vertex_type INTEGER NOT NULL REFERENCES vertex_type,  -- the vertex type
    type TEXT NOT NULL  -- such as "float"
);

CREATE TABLE vertex_type_pricing (  -- What priced the cycles of vertices.
    vertex_type INTEGER NOT NULL REFERENCES vertex_type,  -- the vertex type
    priced_by TEXT NOT NULL,  -- "estimate", "estimator" or "code"
    vertices INTEGER NOT NULL  -- how many were priced so
);

CREATE TABLE variable (  -- The variables of the program.
    variable INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL,  -- as the program calls it
    always_live INTEGER NOT NULL  -- 1 if its memory is never used for anything else, else 0
);

CREATE TABLE variable_life (  -- When variables live that do not always: a range of steps in each program or function that uses them.
    variable INTEGER NOT NULL REFERENCES variable,  -- the variable
    first_step INTEGER NOT NULL,  -- the first step at which it lives
    end_step INTEGER NOT NULL  -- the step after the last at which it lives
);

CREATE TABLE variable_tile (  -- Where variables lie, by tile.
    variable INTEGER NOT NULL REFERENCES variable,  -- the variable
    tile INTEGER NOT NULL REFERENCES tile,  -- where
    bytes INTEGER NOT NULL,  -- its bytes there
    offset INTEGER,  -- address in the tile's memory at which it begins, NULL if not known
    span INTEGER  -- bytes from there to its end, with what alignment leaves empty between its pieces, NULL if not known
);

CREATE TABLE compute_set (  -- Compute sets.
    compute_set INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL  -- as the program calls it
);

CREATE TABLE compute_set_vertex (  -- The vertices of compute sets, by type.
    compute_set INTEGER NOT NULL REFERENCES compute_set,  -- the compute set
    vertex_type TEXT NOT NULL,  -- name of the vertex type
    vertices INTEGER NOT NULL  -- how many
);

CREATE TABLE program (  -- Nodes of the program trees. Equal ones are there once: what several Calls share has several parents.
    program INTEGER PRIMARY KEY,  -- number, from 0: children have lower numbers than their parents
    name TEXT NOT NULL,  -- as the program calls it, may be empty
    type TEXT NOT NULL,  -- "Sequence", "Repeat", "OnTileExecute", "DoExchange", ...
    step INTEGER NOT NULL,  -- the static step that it is, -1 for one that costs nothing itself
    detail TEXT NOT NULL,  -- in words, such as "100 times"
    compute_set INTEGER REFERENCES compute_set  -- what it executes, NULL if nothing
);

CREATE TABLE program_child (  -- What programs consist of.
    parent INTEGER NOT NULL REFERENCES program,  -- the program
    position INTEGER NOT NULL,  -- place among its children, from 0
    child INTEGER NOT NULL REFERENCES program,  -- what stands there
    PRIMARY KEY (parent, position)
) WITHOUT ROWID;

CREATE TABLE entry (  -- The programs of the engine.
    entry INTEGER PRIMARY KEY,  -- number, from 0, as in Engine.run
    program INTEGER NOT NULL REFERENCES program  -- root of its tree
);

CREATE TABLE static_step (  -- All steps of the program, whether they ran or not.
    step INTEGER PRIMARY KEY,  -- number, from 0
    program INTEGER NOT NULL REFERENCES program  -- the leaf of the tree that it is
);

CREATE TABLE made_at (  -- The lines of the user's code on the host that made variables, compute sets and programs; no row where none did, or it is not known.
    kind TEXT NOT NULL,  -- "variable", "compute_set" or "program": the table that has it
    number INTEGER NOT NULL,  -- its number there
    place TEXT NOT NULL,  -- file:line
    PRIMARY KEY (kind, number)
) WITHOUT ROWID;

CREATE TABLE exchange (  -- The exchanges of the program.
    exchange INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL,  -- of the compute set or copy; of copies that are one exchange: what they are called together
    phase TEXT NOT NULL,  -- "before" or "after" a compute set, "copy", or "stream" where the order of a stream is not that of the tiles
    step INTEGER NOT NULL,  -- the static step
    message_list INTEGER NOT NULL  -- what it moves: exchanges that move the same share one list
);

CREATE TABLE exchange_message (  -- What exchanges move each time they run: one row for each pair of tiles.
    message_list INTEGER NOT NULL,  -- number of the list, from 0
    source INTEGER NOT NULL REFERENCES tile,  -- the tile that sends
    destination INTEGER NOT NULL REFERENCES tile,  -- the tile that receives
    bytes INTEGER NOT NULL  -- how much
);

CREATE TABLE execution (  -- About all runs: one row, none if nothing has run.
    tiles INTEGER NOT NULL,  -- tiles that mean values are taken over
    clock_frequency REAL NOT NULL,  -- Hz
    missed INTEGER NOT NULL,  -- executions of steps that trace_event does not have
    recorded INTEGER NOT NULL,  -- executions of each step in a run whose tiles were recorded, from the first on, and as many up to the last; 0 if all are told as means
    unrecorded INTEGER NOT NULL  -- recorded executions that recorded_execution does not have, as all together were too many
);

CREATE TABLE executed_program (  -- Names of what has run, in order; equal neighbours count once.
    name TEXT NOT NULL  -- of the program
);

CREATE TABLE vertex_type_cycles (  -- What vertices cost, by type, in all runs together.
    name TEXT PRIMARY KEY,  -- of the vertex type
    instances INTEGER NOT NULL,  -- its vertices in the program
    cycles INTEGER NOT NULL,  -- worker slots of all executions of all its vertices, by estimates where there are any
    flops INTEGER NOT NULL,  -- floating-point operations; 0 without the option profiler.includeFlopEstimates
    memory_bytes INTEGER NOT NULL,  -- bytes that they load and store; 0 without that option
    compiled_cycles INTEGER NOT NULL,  -- worker slots of their code, also where an estimate is used; 0 without that option or with scalar codelet_cost
    bound_cycles INTEGER NOT NULL  -- worker slots that hand-written code could reach, at most compiled_cycles; 0 as these
);

CREATE TABLE step (  -- The static steps that ran.
    step INTEGER PRIMARY KEY,  -- number
    name TEXT NOT NULL,  -- as the program calls it, may be empty
    type TEXT NOT NULL,  -- "OnTileExecute", "DoExchange", "StreamCopy" or "Sync"
    depth INTEGER NOT NULL,  -- how deep in Repeat, If, Switch and Call it stands
    ipus INTEGER NOT NULL,  -- IPUs that take part
    program INTEGER REFERENCES program  -- the leaf of the tree that it is, NULL if not known
);

CREATE TABLE host_limit (  -- What transfers from and to the outside wait for, where there are several links.
    step INTEGER PRIMARY KEY REFERENCES step,  -- the step
    name TEXT NOT NULL  -- of the link or memory, such as "the host link of machine 0"
);

CREATE TABLE slowest_vertex (  -- Vertices of the tile that a compute step waits for, in all runs together: a row for each vector and list.
    step INTEGER NOT NULL REFERENCES step,  -- the step
    vertex_type TEXT NOT NULL,  -- name of the vertex type
    vertices INTEGER NOT NULL,  -- how many the tile has in this step
    field TEXT NOT NULL,  -- the field, empty in the row of vertices that have neither vectors nor lists
    least INTEGER NOT NULL,  -- the fewest elements that it is connected to
    most INTEGER NOT NULL  -- the most
);

CREATE TABLE run (  -- Runs. Those after the first autoReport.executionProfileProgramRunCount ones share one row.
    run INTEGER PRIMARY KEY,  -- number, from 0
    name TEXT NOT NULL,  -- of the program
    runs INTEGER NOT NULL  -- how many runs the row stands for
);

CREATE TABLE run_step (  -- What a step cost in a run, all its executions there together.
    run INTEGER NOT NULL,  -- the run, or -1 for all runs together if the file does not have them one by one
    step INTEGER NOT NULL REFERENCES step,  -- the step
    executions INTEGER NOT NULL,  -- how often it ran
    sync_cycles INTEGER NOT NULL,  -- cycles of its syncs
    exchange_cycles INTEGER NOT NULL,  -- cycles of its exchanges on an IPU
    copy_cycles INTEGER,  -- cycles by which copies on the tile make it longer; NULL if exchange_cycles has them too
    global_exchange_cycles INTEGER NOT NULL,  -- cycles of its exchanges between IPUs
    host_exchange_cycles INTEGER NOT NULL,  -- cycles of transfers to and from the host
    compute_cycles INTEGER NOT NULL,  -- cycles by which its vertices took the slowest tile farther
    host_bytes INTEGER NOT NULL,  -- bytes of these transfers
    flops INTEGER NOT NULL,  -- floating-point operations; 0 without the option profiler.includeFlopEstimates
    memory_bytes INTEGER NOT NULL,  -- bytes that its vertices load and store; 0 without that option
    tile_profile INTEGER REFERENCES tile_profile,  -- what tiles did in it, NULL if nothing is known by tile
    times INTEGER NOT NULL  -- how often the profile counts: the step's executions where it is what tiles did in one of them, else 1
);

CREATE TABLE tile_profile (  -- What tiles did in a step. Steps in which they did the same, or a multiple of it, share a profile.
    tile_profile INTEGER PRIMARY KEY,  -- number, from 0
    columns TEXT NOT NULL  -- the columns of tile_profile_tile that are known, with spaces between them; the others are 0
);

CREATE TABLE tile_profile_tile (  -- What each tile did, by tile. The view run_step_tile has it for every step and run.
    tile_profile INTEGER NOT NULL REFERENCES tile_profile,  -- the profile
    tile INTEGER NOT NULL REFERENCES tile,  -- the tile
    cycles INTEGER NOT NULL,  -- compute cycles with idle worker threads
    active_cycles INTEGER NOT NULL,  -- compute cycles without idle worker threads
    exchange_cycles INTEGER NOT NULL,  -- cycles in which it sends or receives
    copy_cycles INTEGER NOT NULL,  -- cycles in which it copies within its own memory
    bytes_sent INTEGER NOT NULL,  -- bytes that it sent
    bytes_received INTEGER NOT NULL,  -- bytes that it received
    pieces INTEGER NOT NULL,  -- contiguous pieces that it sent or received, of the direction with more
    PRIMARY KEY (tile_profile, tile)
) WITHOUT ROWID;

CREATE TABLE trace_event (  -- Executions of steps one after the other, as far as they were recorded.
    event INTEGER PRIMARY KEY,  -- number, from 0
    run INTEGER NOT NULL REFERENCES run,  -- the run
    step INTEGER NOT NULL REFERENCES step,  -- the step
    begin_cycle INTEGER NOT NULL,  -- cycle of the machine at which it begins
    cycles INTEGER NOT NULL,  -- how long it lasts
    ipu INTEGER NOT NULL  -- the IPU: of several, each that has a part in an execution has a row, which begins when it comes to it
);

CREATE TABLE run_ipu (  -- Of several IPUs, each of which has a clock, what no step has; no rows where there is one.
    run INTEGER NOT NULL REFERENCES run,  -- the run
    ipu INTEGER NOT NULL,  -- the IPU
    waiting_cycles INTEGER NOT NULL,  -- cycles that it waits for others where no step is: at branches, for the host, at the end
    PRIMARY KEY (run, ipu)
) WITHOUT ROWID;

CREATE TABLE run_step_ipu (  -- Of several IPUs, what each spends in a step of a run, all executions there together; no row for one without a part in it.
    run INTEGER NOT NULL REFERENCES run,  -- the run
    step INTEGER NOT NULL REFERENCES step,  -- the step
    ipu INTEGER NOT NULL,  -- the IPU
    sync_cycles INTEGER NOT NULL,  -- cycles of its syncs
    exchange_cycles INTEGER NOT NULL,  -- cycles of its exchanges within it
    copy_cycles INTEGER NOT NULL,  -- cycles by which copies on its tiles make that longer
    global_exchange_cycles INTEGER NOT NULL,  -- cycles of exchanges with other IPUs
    host_exchange_cycles INTEGER NOT NULL,  -- cycles of transfers from or to the host
    compute_cycles INTEGER NOT NULL,  -- cycles of its vertices
    waiting_cycles INTEGER NOT NULL,  -- cycles that it waits for other IPUs before
    PRIMARY KEY (run, step, ipu)
) WITHOUT ROWID;

CREATE TABLE recorded_execution (  -- What tiles did in single executions of compute steps: the first and the last ones in a run, see execution.recorded; none of steps of which all of these are as the mean one.
    run INTEGER NOT NULL REFERENCES run,  -- the run
    step INTEGER NOT NULL REFERENCES step,  -- the step
    execution INTEGER NOT NULL,  -- number among the executions of the step in this run, from 0
    tile_profile INTEGER NOT NULL REFERENCES tile_profile,  -- what tiles did: the column cycles
    PRIMARY KEY (run, step, execution)
) WITHOUT ROWID;

CREATE TABLE line_profile (  -- Whether cycles are known by source line: one row if they are, none if not.
    compiled INTEGER NOT NULL  -- 1 if prices are those of compiled code, 0 if they are scalar ones, which have no bounds
);

CREATE TABLE codelet (  -- The codelets of vertices that ran, where cycles are known by source line.
    codelet INTEGER PRIMARY KEY,  -- number, from 0
    vertex_type TEXT NOT NULL,  -- name of the vertex type
    workers INTEGER NOT NULL,  -- worker contexts that a vertex takes: all, of a MultiVertex
    blocks INTEGER NOT NULL  -- how many blocks its code has
);

CREATE TABLE codelet_line (  -- The text of codelets, line by line.
    codelet INTEGER NOT NULL REFERENCES codelet,  -- the codelet
    place INTEGER NOT NULL,  -- place of the line in the codelet's text, from 0
    function TEXT NOT NULL,  -- the function that it belongs to: compute, or a helper
    file TEXT NOT NULL,  -- where it stands
    line INTEGER NOT NULL,  -- number of the line in the file
    text TEXT NOT NULL,  -- the line
    PRIMARY KEY (codelet, place)
) WITHOUT ROWID;

CREATE TABLE block_line (  -- What lines have of an execution of a block: code between branches. It costs the sum of its rows.
    codelet INTEGER NOT NULL REFERENCES codelet,  -- the codelet
    block INTEGER NOT NULL,  -- number of the block, from 0, in the order of the text
    place INTEGER NOT NULL,  -- the line, see codelet_line
    slots INTEGER NOT NULL,  -- worker slots
    bound INTEGER NOT NULL  -- slots that hand-written code could reach, at most as many; 0 with scalar prices
);

CREATE TABLE loop_hint (  -- Loops of codelets that could be shorter.
    codelet INTEGER NOT NULL REFERENCES codelet,  -- the codelet
    place INTEGER NOT NULL,  -- the line of the loop, see codelet_line
    first_block INTEGER NOT NULL,  -- number of its first block, see block_line
    end_block INTEGER NOT NULL,  -- that of the first block behind it
    reason TEXT NOT NULL,  -- why it does not run on vectors, though the same arithmetic can be written so that it does; '' if it does
    saved INTEGER NOT NULL,  -- slots that an execution of its first block takes less where the fields are aligned to 8 bytes
    fields TEXT NOT NULL  -- names of fields that are vectors of floats and not aligned, with commas between them
);

CREATE TABLE vertex_group (  -- The vertices of a codelet in a compute set, with all their executions.
    vertex_group INTEGER PRIMARY KEY,  -- number, from 0
    compute_set TEXT NOT NULL,  -- name of the compute set
    codelet INTEGER NOT NULL REFERENCES codelet,  -- the codelet
    vertices INTEGER NOT NULL,  -- how many
    slots INTEGER NOT NULL  -- worker slots that they were charged, by estimates where there are any
);

CREATE TABLE block_execution (  -- How often blocks ran. Of a MultiVertex the blocks of the worker that took longest count.
    vertex_group INTEGER NOT NULL REFERENCES vertex_group,  -- whose vertices
    block INTEGER NOT NULL,  -- the block, see block_line
    executions INTEGER NOT NULL,  -- how often; a block without a row never ran
    PRIMARY KEY (vertex_group, block)
) WITHOUT ROWID;

CREATE TABLE longest_vertex (  -- The vertex of each compute set that took the most cycles in one execution.
    longest_vertex INTEGER PRIMARY KEY,  -- number, from 0
    compute_set TEXT NOT NULL,  -- name of the compute set
    vertex_type TEXT NOT NULL,  -- name of the vertex type
    tile INTEGER NOT NULL REFERENCES tile,  -- where it is
    cycles INTEGER NOT NULL  -- tile cycles of this execution
);

CREATE TABLE longest_vertex_field (  -- How long its fields are.
    longest_vertex INTEGER NOT NULL REFERENCES longest_vertex,  -- the vertex
    name TEXT NOT NULL,  -- of the field
    elements INTEGER NOT NULL,  -- in all
    field_rows INTEGER  -- rows of a list of vectors, NULL for a vector
);

CREATE VIEW step_total AS  -- Steps with what they cost over all runs.
    SELECT step, name, type, depth, SUM(executions) AS executions,
        SUM(sync_cycles + exchange_cycles + COALESCE(copy_cycles, 0) + global_exchange_cycles + host_exchange_cycles + compute_cycles)
            AS cycles,
        SUM(sync_cycles) AS sync_cycles, SUM(exchange_cycles) AS exchange_cycles, SUM(copy_cycles) AS copy_cycles,
        SUM(global_exchange_cycles) AS global_exchange_cycles, SUM(compute_cycles) AS compute_cycles,
        SUM(host_exchange_cycles) AS host_exchange_cycles, SUM(host_bytes) AS host_bytes, SUM(flops) AS flops
    FROM run_step JOIN step USING (step)
    WHERE (run < 0) = EXISTS (SELECT 1 FROM run_step WHERE run < 0)
    GROUP BY step;

CREATE VIEW run_total AS  -- Runs with what they cost.
    SELECT run, name, runs,
        SUM(sync_cycles + exchange_cycles + COALESCE(copy_cycles, 0) + global_exchange_cycles + host_exchange_cycles + compute_cycles)
            AS cycles
    FROM run JOIN run_step USING (run) GROUP BY run;

CREATE VIEW run_step_tile AS  -- What each tile did in a step of a run, all executions together; tiles that did nothing are not there.
    SELECT run, step, tile, times * cycles AS cycles, times * active_cycles AS active_cycles,
        times * tile_profile_tile.exchange_cycles AS exchange_cycles, times * tile_profile_tile.copy_cycles AS copy_cycles,
        times * bytes_sent AS bytes_sent, times * bytes_received AS bytes_received, times * pieces AS pieces
    FROM run_step JOIN tile_profile_tile USING (tile_profile);

CREATE VIEW tile_total AS  -- What each tile did over all runs; tiles that did nothing are not there.
    WITH used AS (
        SELECT tile_profile, SUM(times) AS times FROM run_step
        WHERE (run < 0) = EXISTS (SELECT 1 FROM run_step WHERE run < 0)
        GROUP BY tile_profile
    )
    SELECT tile, SUM(times * cycles) AS cycles, SUM(times * active_cycles) AS active_cycles,
        SUM(times * exchange_cycles) AS exchange_cycles, SUM(times * copy_cycles) AS copy_cycles,
        SUM(times * bytes_sent) AS bytes_sent, SUM(times * bytes_received) AS bytes_received,
        SUM(times * pieces) AS pieces
    FROM used JOIN tile_profile_tile USING (tile_profile)
    GROUP BY tile;

CREATE VIEW tile_total_memory AS  -- Memory of each tile, with and without what alignment leaves empty.
    SELECT tile.tile, COALESCE(SUM(bytes), 0) AS excluding_gaps, COALESCE(SUM(bytes), 0) + gaps AS including_gaps
    FROM tile LEFT JOIN tile_memory ON tile_memory.tile = tile.tile GROUP BY tile.tile;

CREATE VIEW category_total AS  -- Memory of all tiles by what it is used for.
    SELECT name, COALESCE(SUM(bytes), 0) AS bytes
    FROM memory_category LEFT JOIN tile_memory USING (category) GROUP BY category;

CREATE VIEW variable_total AS  -- Variables with their bytes on all tiles, and on how many tiles they lie.
    SELECT variable, name, always_live, COALESCE(SUM(bytes), 0) AS bytes, COUNT(DISTINCT tile) AS tiles
    FROM variable LEFT JOIN variable_tile USING (variable) GROUP BY variable;

CREATE VIEW liveness AS  -- Bytes, on all tiles, of the variables that live at each static step and not always.
    SELECT step, COALESCE(SUM(bytes), 0) AS not_always_live
    FROM static_step
        LEFT JOIN variable_life ON first_step <= step AND step < end_step
        LEFT JOIN variable_tile USING (variable)
    GROUP BY step;

CREATE VIEW line_cost AS  -- Lines of codelets with their worker slots: slots_charged add up to the type's cycles; slots_compiled are those of the code, whatever estimates say, and bound what hand-written code could reach, at most slots_charged; both NULL with scalar prices.
    WITH code AS (  -- of each line in each group of vertices
        SELECT vertex_group, place, SUM(executions * workers * block_line.slots) AS slots, SUM(executions * workers * bound) AS bound
        FROM block_execution JOIN vertex_group USING (vertex_group) JOIN codelet USING (codelet)
            JOIN block_line USING (codelet, block)
        GROUP BY vertex_group, place
    ), summed AS (  -- the same, with the sums up to the line and of all lines
        SELECT vertex_group, codelet, codelet_line.place, vertex_group.slots AS charged, COALESCE(code.slots, 0) AS slots,
            COALESCE(code.bound, 0) AS bound,
            SUM(COALESCE(code.slots, 0)) OVER (PARTITION BY vertex_group ORDER BY codelet_line.place) AS upto,
            SUM(COALESCE(code.slots, 0)) OVER (PARTITION BY vertex_group) AS whole
        FROM vertex_group JOIN codelet_line USING (codelet) LEFT JOIN code USING (vertex_group, place)
    ), shared AS (  -- and with those of the slots charged: in proportion to the code; the first line has what costs nothing as code
        SELECT codelet, place, slots, bound,
            CASE WHEN charged = whole THEN upto
                WHEN whole = 0 THEN charged
                WHEN upto = whole THEN charged
                ELSE CAST(upto * charged / whole AS INTEGER) END
            - CASE WHEN charged = whole THEN upto - slots
                WHEN whole = 0 THEN CASE WHEN place = 0 THEN 0 ELSE charged END
                WHEN upto - slots = whole THEN charged
                ELSE CAST((upto - slots) * charged / whole AS INTEGER) END AS charged
        FROM summed
    )
    SELECT vertex_type, file, line, text, SUM(charged) AS slots_charged,
        CASE WHEN compiled THEN SUM(shared.slots) END AS slots_compiled, CASE WHEN compiled THEN MIN(SUM(bound), SUM(charged)) END AS bound
    FROM shared JOIN codelet USING (codelet) JOIN codelet_line USING (codelet, place), line_profile
    GROUP BY codelet, place HAVING SUM(charged) > 0 OR SUM(shared.slots) > 0;
