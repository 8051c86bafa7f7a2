// The trace of one run: its events, and what each step's phases are on every tile.

const PHASES = ["sync", "exchange", "compute", "host"]; // in the order in which an event goes through them

page.traceRuns = async () => {
  const execution = page.data.execution;
  const trace = await page.unpackAll(execution.trace);
  const rows = page.tileRows(execution.rows);
  const events = new Map();
  trace.run.forEach((run, event) => {
    if (!events.has(run)) events.set(run, []);
    events.get(run).push(event);
  });
  return {
    numbers: Array.from(events.keys()),
    missed: trace.missed,
    load: (run) => readRun(execution, trace, rows, run, events.get(run)),
  };
};

async function readRun(execution, trace, rows, run, events) {
  const columns = await page.unpack(execution.runs[run]?.steps ?? execution.steps);
  const steps = page.records(columns);
  await rows.load(steps.flatMap((one) => [one.rows.compute, one.rows.exchange]));
  const placeOf = new Map(steps.map((one) => [one.number, one.place]));
  events = events.filter((one) => placeOf.has(trace.step[one]));
  const origin = trace.begin[events[0]] ?? 0;
  const model = {
    steps,
    tiles: rows.tiles,
    leftOut: rows.leftOut,
    origin,
    missed: trace.missed,
    step: Uint32Array.from(events, (one) => placeOf.get(trace.step[one])),
    begin: Float64Array.from(events, (one) => trace.begin[one] - origin),
    end: Float64Array.from(events, (one) => trace.begin[one] + trace.cycles[one] - origin),
  };
  model.length = Math.max(1, model.end[model.end.length - 1] ?? 0);
  for (const one of steps) describeStep(one, rows);
  return model;
}

// A step's mean cycles of each phase, and each tile's share of them: an array, or one number for all tiles.
function describeStep(step, rows) {
  const times = Math.max(1, step.executions);
  const exchange = step.exchange_cycles + step.global_exchange_cycles;
  step.mean = {
    sync: step.sync_cycles / times,
    exchange: exchange / times,
    compute: step.compute_cycles / times,
    host: step.host_exchange_cycles / times,
  };
  step.meanTotal = PHASES.reduce((sum, one) => sum + step.mean[one], 0);
  step.byTile = {
    sync: null,
    exchange: withGlobal(rows.row(step.rows.exchange), step.global_exchange_cycles),
    compute: rows.row(step.rows.compute),
    host: null,
  };
  step.whole = { sync: step.sync_cycles, exchange, compute: step.compute_cycles, host: step.host_exchange_cycles };
  step.evenly = {
    sync: 1,
    exchange: exchange ? Math.min(1, (step.mean_exchange + step.global_exchange_cycles) / exchange) : 0,
    compute: step.compute_cycles ? Math.min(1, step.mean_compute / step.compute_cycles) : 0,
    host: 1,
  };
}

// All tiles are in an exchange between IPUs until it is over.
function withGlobal(row, cycles) {
  return row && cycles ? Float32Array.from(row, (one) => one + cycles) : row;
}

// Cycles of an event's phases: compute takes what the others leave of it; without compute, all are as long as in the mean.
page.eventPhases = (model, event, into) => {
  const step = model.steps[model.step[event]];
  const length = model.end[event] - model.begin[event];
  const { sync, exchange, compute, host } = step.mean;
  if (compute > 0 && length >= sync + exchange + host) {
    into[0] = sync;
    into[1] = exchange;
    into[2] = length - sync - exchange - host;
    into[3] = host;
  } else {
    const scale = step.meanTotal ? length / step.meanTotal : 0;
    PHASES.forEach((phase, place) => (into[place] = step.mean[phase] * scale));
  }
  return into;
};

// A tile's share of a phase of a step, 0 to 1.
page.tileShare = (step, phase, tile) => {
  const values = step.byTile[phase];
  return values && step.whole[phase] ? Math.min(1, values[tile] / step.whole[phase]) : step.evenly[phase];
};

// The first event that ends after `cycle`.
page.eventAt = (model, cycle) => {
  let low = 0;
  let high = model.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.end[middle] <= cycle) low = middle + 1;
    else high = middle;
  }
  return low;
};
