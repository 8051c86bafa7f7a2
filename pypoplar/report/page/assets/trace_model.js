// The trace of one run: its events, and what each step's phases are on every tile.

const PHASES = (page.data.phases ?? []).filter(({ cycles }) => cycles); // in the order in which an event goes through them
const placeOfPhase = (name) => PHASES.findIndex((one) => one.name === name);
const [EXCHANGE, COPIES, COMPUTE] = ["exchange", "copies", "compute"].map(placeOfPhase);

/**
 * A step, or one of its executions as it was: by phase its mean cycles, each tile's cycles, and what they are shares of.
 * @typedef {{mean: number[], meanTotal: number, byTile: (ArrayLike<number> | null)[], whole: number[], evenly: number[],
 *   longest: number, critical: number, executions: number, recorded?: boolean}} Doing
 *
 * The events of a run in the order of time, in cycles since its begin.
 * @typedef {{steps: Doing[], doings: Doing[], doing: ArrayLike<number>, step: Uint32Array, begin: Float64Array, end: Float64Array,
 *   number: ArrayLike<number>, firstTile: number, lastTile: number, recorded: number, unrecorded: boolean, leftOut: boolean}} Trace
 */

page.traceRuns = async (execution) => {
  const trace = await page.unpackAll(execution.trace);
  const rows = page.tileRows(execution.rows);
  const ipus = execution.trace.ipus ?? 1; // each of several has a time, and so a trace, of its own
  const events = new Map();
  const spans = new Map();
  trace.run.forEach((run, event) => {
    const number = run * ipus + (ipus > 1 ? trace.ipu[event] : 0);
    if (!events.has(number)) events.set(number, []);
    events.get(number).push(event);
    const [from, to] = spans.get(run) ?? [Infinity, 0];
    spans.set(run, [Math.min(from, trace.begin[event]), Math.max(to, trace.begin[event] + trace.cycles[event])]);
  });
  const runOf = (number) => Math.floor(number / ipus);
  return {
    numbers: Array.from(events.keys()).sort((one, other) => one - other),
    missed: trace.missed,
    title: (number) => {
      const name = `${runOf(number)}: ${page.named(execution.runs[runOf(number)]?.name)}`;
      return ipus > 1 ? `${name}, IPU ${number % ipus}` : name;
    },
    load: (number) =>
      readRun(execution, trace, rows, runOf(number), events.get(number), spans.get(runOf(number)), {
        ipu: ipus > 1 ? number % ipus : null,
        perIpu: rows.tiles / ipus,
      }),
  };
};

async function readRun(execution, trace, rows, run, events, span, { ipu, perIpu }) {
  const columns = await page.unpack(execution.runs[run]?.steps ?? execution.steps);
  const steps = page.records(columns);
  const recorded = trace.tiles ?? { event: [], row: [] };
  const rowOf = new Map(recorded.event.map((one, place) => [one, recorded.row[place]]));
  const own = events.filter((one) => rowOf.has(one)).map((one) => rowOf.get(one));
  await rows.load([...steps.flatMap((one) => PHASES.filter(({ row }) => row).map(({ row }) => one.rows[row])), ...own]);
  const placeOf = new Map(steps.map((one) => [one.number, one.place]));
  events = events.filter((one) => placeOf.has(trace.step[one]));
  const origin = span[0];
  const model = {
    steps,
    tiles: rows.tiles,
    firstTile: ipu === null ? 0 : ipu * perIpu,
    lastTile: ipu === null ? rows.tiles : (ipu + 1) * perIpu,
    ipu,
    leftOut: rows.leftOut,
    origin,
    missed: trace.missed,
    step: Uint32Array.from(events, (one) => placeOf.get(trace.step[one])),
    begin: Float64Array.from(events, (one) => trace.begin[one] - origin),
    end: Float64Array.from(events, (one) => trace.begin[one] + trace.cycles[one] - origin),
  };
  model.length = Math.max(1, span[1] - origin);
  if (ipu !== null) for (const one of steps) PHASES.forEach(({ cycles }, phase) => (one[cycles] = one.by_ipu[ipu][phase]));
  for (const one of steps) describeStep(one, rows);
  if (ipu !== null) for (const one of steps) one.critical = criticalTile(model, one);
  model.doings = steps.slice();
  model.doing = model.step.slice();
  model.number = numbered(model.step);
  model.recorded = trace.recorded;
  model.unrecorded = trace.unrecorded;
  events.forEach((one, event) => {
    const values = rowOf.has(one) ? rows.row(rowOf.get(one)) : null;
    if (values) model.doing[event] = model.doings.push(asItWas(model, event, values)) - 1;
  });
  return model;
}

// Of each event the number of the execution among those of its step.
/** @param {Uint32Array} steps @returns {Uint32Array} */
function numbered(steps) {
  const counts = new Map();
  return steps.map((step) => {
    const number = counts.get(step) ?? 0;
    counts.set(step, number + 1);
    return number;
  });
}

// What tiles do in an event: a step as its mean execution is, or as it was where each tile's compute was recorded, which are `values`.
function asItWas(model, event, values) {
  const step = model.steps[model.step[event]];
  const others = step.meanTotal - step.mean[COMPUTE];
  const one = { ...step, mean: step.mean.slice(), byTile: step.byTile.slice(), whole: step.whole.slice(), recorded: true };
  one.mean[COMPUTE] = one.whole[COMPUTE] = Math.max(0, model.end[event] - model.begin[event] - others);
  one.meanTotal = others + one.mean[COMPUTE];
  one.byTile[COMPUTE] = values;
  one.longest = one.mean.indexOf(Math.max(...one.mean));
  one.critical = slowest(model, values);
  return one;
}

// The tile with the most cycles among those that are shown.
/** @param {{firstTile: number, lastTile: number}} model @param {ArrayLike<number>} values @returns {number} */
function slowest(model, values) {
  let most = model.firstTile;
  for (let tile = most + 1; tile < model.lastTile; tile++) if (values[tile] > values[most]) most = tile;
  return most;
}

// The tile of an IPU that a step waits for, -1 for none.
/** @param {{firstTile: number, lastTile: number}} model @param {Doing} step @returns {number} */
function criticalTile(model, step) {
  for (const phase of [COMPUTE, EXCHANGE, COPIES]) {
    const values = step.byTile[phase];
    const tile = values ? slowest(model, values) : -1;
    if (tile >= 0 && values[tile]) return tile;
  }
  return -1;
}

/** @param {Trace} model @param {number} event @returns {Doing} */
page.doingOf = (model, event) => model.doings[model.doing[event]];

// Whether tiles are shown as they were in an event: their times are recorded, or were, and are as those of the mean execution.
/** @param {Trace} model @param {number} event @returns {boolean} */
page.isAsItWas = (model, event) => {
  const step = page.doingOf(model, event);
  const number = model.number[event];
  const first = number < model.recorded || number >= step.executions - model.recorded;
  return Boolean(step.recorded) || (first && !model.unrecorded && !model.leftOut);
};

// A step's mean cycles of each phase, and each tile's share of them: an array, or one number for all tiles. Exchange and copies
// on the tile are one span, in which each tile goes on with its copies when its own exchange is over: shares are of all of it.
function describeStep(step, rows) {
  const times = Math.max(1, step.executions);
  step.mean = PHASES.map(({ cycles }) => step[cycles] / times);
  step.meanTotal = step.mean.reduce((sum, one) => sum + one, 0);
  step.byTile = PHASES.map(({ row }) => (row ? rows.row(step.rows[row]) : null));
  step.whole = PHASES.map(({ cycles }, phase) => (isMoving(phase) ? step.exchange_cycles + step.copy_cycles : step[cycles]));
  step.evenly = PHASES.map(({ row }, phase) =>
    row ? (step.whole[phase] ? Math.min(1, step[`mean_${row}`] / step.whole[phase]) : 0) : 1,
  );
  step.longest = step.mean.indexOf(Math.max(...step.mean));
}

/** @param {number} phase @returns {boolean} */
const isMoving = (phase) => phase === EXCHANGE || phase === COPIES;

// Cycles of the span that a phase is in.
/** @param {ArrayLike<number>} parts @param {number} phase @returns {number} */
page.phaseSpan = (parts, phase) =>
  isMoving(phase) ? parts[EXCHANGE] + (COPIES < 0 ? 0 : parts[COPIES]) : parts[phase];

// Cycles of an event's phases: compute takes what the others leave of it; without compute, all are as long as in the mean.
/** @template {number[] | Float64Array} Parts @param {Trace} model @param {number} event @param {Parts} into @returns {Parts} */
page.eventPhases = (model, event, into) => {
  const step = page.doingOf(model, event);
  const length = model.end[event] - model.begin[event];
  const others = step.meanTotal - step.mean[COMPUTE];
  const fits = step.mean[COMPUTE] > 0 && length >= others;
  const scale = fits ? 1 : step.meanTotal ? length / step.meanTotal : 0;
  for (let phase = 0; phase < PHASES.length; phase++) into[phase] = step.mean[phase] * scale;
  if (fits) into[COMPUTE] = length - others;
  return into;
};

// A tile's share of the span of a phase of a step, 0 to 1.
/** @param {Doing} step @param {number} phase @param {number} tile @returns {number} */
page.tileShare = (step, phase, tile) => {
  const values = step.byTile[phase];
  return values && step.whole[phase] ? Math.min(1, values[tile] / step.whole[phase]) : step.evenly[phase];
};

// A round of a loop: from the first event between `first` and `last` whose step comes again to where it does; null where none does.
/** @param {Trace} model @param {number} first @param {number} last */
page.iteration = (model, first, last) => {
  const tried = new Set();
  for (let event = first; event < last; event++) {
    const step = model.step[event];
    const next = tried.has(step) ? -1 : model.step.indexOf(step, event + 1);
    tried.add(step);
    if (next >= 0) return { event, next, from: model.begin[event], to: model.begin[next] };
  }
  return null;
};

// The first event that ends after `cycle`.
/** @param {{end: ArrayLike<number>}} model @param {number} cycle @returns {number} */
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
