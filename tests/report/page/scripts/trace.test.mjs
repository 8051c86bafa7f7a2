// The arithmetic of the trace: phases of events, tiles of rows, and the pixels that they become.
import assert from "node:assert/strict";
import test from "node:test";
import { plain, random, scripts } from "./page_scripts.mjs";

const phases = [
  { name: "sync", cycles: "sync_cycles" },
  { name: "exchange", cycles: "exchange_cycles", row: "exchange_cycles_by_tile" },
  { name: "copies", cycles: "copy_cycles", row: "copy_cycles_by_tile" },
  { name: "compute", cycles: "compute_cycles", row: "cyclesByTile" },
  { name: "waiting", cycles: null },
];
const wanted = ["PHASES", "EXCHANGE", "COPIES", "COMPUTE", "numbered", "slowest", "criticalTile"];
const { page, PHASES, EXCHANGE, COPIES, COMPUTE, numbered, slowest, criticalTile } = scripts(
  ["format", "trace_model", "trace_raster"],
  { data: { phases }, wanted },
);

// A step with mean cycles of its phases; on each tile what `byTile` says, or its share `evenly`.
function doing(mean, { byTile = [null, null, null, null], evenly = [1, 1, 1, 1], executions = 1 } = {}) {
  const whole = mean.map((one, phase) => (phase === EXCHANGE || phase === COPIES ? mean[EXCHANGE] + mean[COPIES] : one));
  return { mean, meanTotal: mean.reduce((sum, one) => sum + one, 0), byTile, whole, evenly, executions, critical: -1 };
}

function trace(doings, events, tiles = 4) {
  return {
    steps: doings,
    doings,
    doing: events.map(([place]) => place),
    step: Uint32Array.from(events, ([place]) => place),
    begin: Float64Array.from(events, ([, begin]) => begin),
    end: Float64Array.from(events, ([, , end]) => end),
    number: numbered(Uint32Array.from(events, ([place]) => place)),
    firstTile: 0,
    lastTile: tiles,
    recorded: 1,
    unrecorded: false,
    leftOut: false,
  };
}

test("phases that have cycles are known by their places", () => {
  assert.deepEqual(plain([PHASES.map(({ name }) => name), EXCHANGE, COPIES, COMPUTE]), [["sync", "exchange", "copies", "compute"], 1, 2, 3]);
});

test("executions are numbered step by step", () => {
  assert.deepEqual(Array.from(numbered(Uint32Array.of(3, 1, 3, 3, 1))), [0, 0, 1, 2, 1]);
});

test("an event is as long as its phases together", () => {
  const draw = random(3);
  for (let round = 0; round < 200; round++) {
    const mean = Array.from({ length: 4 }, () => draw(20));
    const model = trace([doing(mean)], [[0, 5, 5 + draw(100)]]);
    const parts = Array.from(page.eventPhases(model, 0, new Float64Array(4)));
    const length = model.end[0] - model.begin[0];
    const others = mean[0] + mean[1] + mean[2];
    assert.ok(Math.abs(parts.reduce((sum, one) => sum + one, 0) - (model.steps[0].meanTotal ? length : 0)) < 1e-9);
    if (mean[3] && length >= others) assert.deepEqual(parts.slice(0, 3), mean.slice(0, 3)); // compute takes the rest
    assert.equal(page.phaseSpan(parts, EXCHANGE), parts[EXCHANGE] + parts[COPIES]);
    assert.equal(page.phaseSpan(parts, COMPUTE), parts[COMPUTE]);
  }
});

test("the first event that ends after a cycle is found", () => {
  const draw = random(4);
  const ends = Array.from({ length: 50 }, () => draw(100)).sort((one, other) => one - other);
  for (let cycle = -1; cycle < 102; cycle++) {
    const found = ends.findIndex((one) => one > cycle);
    assert.equal(page.eventAt({ end: ends }, cycle), found < 0 ? ends.length : found);
  }
});

test("a round of a loop goes from a step to where it comes again", () => {
  const steps = [doing([0, 0, 0, 1]), doing([0, 0, 0, 1]), doing([0, 0, 0, 1])];
  const model = trace(steps, [[0, 0, 1], [1, 1, 2], [2, 2, 3], [1, 3, 4], [2, 4, 5]]);
  assert.deepEqual(plain(page.iteration(model, 0, 5)), { event: 1, next: 3, from: 1, to: 3 });
  assert.equal(page.iteration(model, 3, 5), null);
});

test("times of tiles are recorded in the first and last executions of a step", () => {
  const model = trace([doing([0, 0, 0, 1], { executions: 3 })], [[0, 0, 1], [0, 1, 2], [0, 2, 3]]);
  assert.deepEqual([0, 1, 2].map((event) => page.isAsItWas(model, event)), [true, false, true]);
  assert.equal(page.isAsItWas({ ...model, unrecorded: true }, 0), false);
});

test("the slowest of a trace's tiles is the first with the most cycles", () => {
  const values = [9, 1, 7, 7, 8];
  assert.equal(slowest({ firstTile: 1, lastTile: 4 }, values), 2);
  const step = doing([0, 5, 0, 0], { byTile: [null, [0, 3, 5, 1], null, [0, 0, 0, 0]] });
  assert.equal(criticalTile({ firstTile: 0, lastTile: 4 }, step), 2);
  assert.equal(criticalTile({ firstTile: 0, lastTile: 4 }, doing([5, 0, 0, 0])), -1);
});

test("a tile's share of a phase is at most all of it", () => {
  const step = doing([0, 4, 0, 10], { byTile: [null, [4, 2, 0, 8], null, null], evenly: [1, 1, 1, 0.25] });
  assert.deepEqual([0, 1, 2, 3].map((tile) => page.tileShare(step, EXCHANGE, tile)), [1, 0.5, 0, 1]);
  assert.equal(page.tileShare(step, COMPUTE, 2), 0.25);
});

test("rows have all tiles, each row one at least", () => {
  for (const [first, last, rows] of [[0, 1472, 300], [10, 17, 7], [3, 100, 10]]) {
    const cut = Array.from({ length: rows }, (_, row) => page.tilesOfRow(row, first, last, rows));
    assert.deepEqual([cut[0][0], cut.at(-1)[1]], [first, last]);
    cut.slice(1).forEach(([from], row) => assert.equal(from, cut[row][1]));
  }
  for (let row = 0; row < 9; row++) {
    const [from, to] = page.tilesOfRow(row, 5, 8, 9); // more rows than tiles
    assert.deepEqual([from, to - from], [5 + Math.floor(row / 3), 1]);
  }
});

const COLOURS = { phases: [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], idle: [0, 0, 0], blank: [100, 100, 100] };

test("pixels are the mixture of what happens in them", () => {
  const step = doing([4, 0, 0, 16], { byTile: [null, null, null, [16, 8]] });
  const model = trace([step], [[0, 0, 20]], 2);
  const paint = page.traceRaster(model);
  const image = paint({ from: 0, to: 40, first: 0, last: 2 }, 4, 2, COLOURS); // 10 cycles a pixel; nothing from 20 on
  const pixel = (column, row) => Array.from(image.data.slice(4 * (row * 4 + column), 4 * (row * 4 + column) + 3));
  assert.deepEqual(pixel(0, 0), [255, 153, 153]); // 4 cycles of sync, 6 of compute
  assert.deepEqual(pixel(1, 0), [255, 255, 255]);
  assert.deepEqual(pixel(1, 1), [51, 51, 51]); // this tile computes until cycle 12
  assert.deepEqual(pixel(2, 0), [100, 100, 100]);
});

test("many short events in a pixel are as a long one that is so divided", () => {
  const step = doing([1, 0, 0, 3], { byTile: [null, null, null, [3, 1]] });
  const many = trace([step], Array.from({ length: 100 }, (_, event) => [0, 4 * event, 4 * event + 4]), 2);
  const image = page.traceRaster(many)({ from: 0, to: 400, first: 0, last: 2 }, 1, 2, COLOURS);
  const expected = [255, 191, 191, 255, 127, 64, 64, 255]; // a quarter of sync; of the rest all computes, or a third
  image.data.forEach((one, at) => assert.ok(Math.abs(one - expected[at]) <= 1, `${at}: ${one}`));
});
