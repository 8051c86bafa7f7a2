// Numbers as the page writes them, and what is counted out of arrays.
import assert from "node:assert/strict";
import test from "node:test";
import { plain, random, scripts } from "./page_scripts.mjs";

const { page, below } = scripts(["format", "plot", "variables", "name_tree"], { wanted: ["below"] });

test("numbers are in full in tables and short in headlines", () => {
  const rows = [
    [1234567, undefined, "1,234,567", "1,234,567"],
    [1536, "bytes", "1,536 B", "1.5 KiB"],
    [1023, "bytes", "1,023 B", "1,023 B"],
    [12 * 1024 ** 2, "bytes", "12,582,912 B", "12 MiB"],
    [0.1234, "share", "12.3 %", "12.3 %"],
    [2.5, "decimal", "2.500", "2.500"],
    [1.85e9, "Hz", "1.85 GHz", "1.85 GHz"],
    [2.5e-6, "seconds", "2.50 \u00b5s", "2.50 \u00b5s"],
    [0.0125, "seconds", "12.50 ms", "12.50 ms"],
    [3, "seconds", "3.000 s", "3.000 s"],
    [12345, "flop", "12.3 kFLOP", "12.3 kFLOP"],
    ["tile", "text", "tile", "tile"],
    [null, "bytes", "", null],
  ];
  for (const [value, unit, full, short] of rows) {
    assert.equal(page.format(value, unit), full);
    if (short !== null) assert.equal(page.short(value, unit), short);
  }
});

test("what is short has its exact value beside it", () => {
  assert.equal(page.inFull(1536, "bytes"), "1,536 B");
  assert.equal(page.inFull(0.0000012345, "seconds"), "0.000001235 s");
  assert.equal(page.inFull(7, "share"), "");
});

test("labels of plots are cut by characters and have no markup", () => {
  assert.equal(page.label("<b>&", 60), "&lt;b&gt;&amp;");
  assert.equal(page.label("\u{1f600}".repeat(5), 4), `${"\u{1f600}".repeat(3)}\u2026`);
  assert.equal(page.label("1234", 4), "1234");
});

test("tiles are shown from the first to the last that has something", () => {
  const draw = random(1);
  for (let round = 0; round < 200; round++) {
    const tiles = 1 + draw(300);
    const values = Array.from({ length: tiles }, () => (draw(60) ? 0 : 1 + draw(9)));
    const used = values.flatMap((value, tile) => (value ? [tile] : []));
    const [first, end] = page.usedTiles(tiles, [null, values]);
    assert.ok(used.every((tile) => first <= tile && tile < end));
    const part = used.length && tiles > 64 ? [used[0], used.at(-1) + 1] : [0, tiles];
    const expected = part[1] - part[0] > 0.6 * tiles ? [0, tiles] : part;
    assert.deepEqual([first, end], expected);
    assert.equal(page.someTiles([first, end], tiles) === "", end - first === tiles);
  }
});

test("sorted numbers below a limit are counted", () => {
  const draw = random(2);
  for (let round = 0; round < 100; round++) {
    const sorted = Array.from({ length: draw(20) }, () => draw(10)).sort((one, other) => one - other);
    for (let limit = -1; limit < 11; limit++) assert.equal(below(sorted, limit), sorted.filter((one) => one < limit).length);
  }
});

test("a name's row has the sums of all below it, and names that fold are one row", () => {
  const data = { name: ["", "net", "s0", "s1", "x", "x"], fold: [null, null, "s*", "s*", null, null], parent: [-1, 0, 1, 1, 2, 3] };
  const tree = page.nameTree({ ...data, cycles: [0, 1, 10, 20, 100, 300] }, ["cycles"], () => {});
  assert.equal(tree.root.sums.cycles, 431);
  const net = tree.find("net", true);
  assert.deepEqual(plain(tree.below(net, "cycles", true).map((one) => [one.name, one.sums.cycles])), [["s*", 430]]);
  assert.deepEqual(plain(tree.below(net, "cycles", false).map((one) => [one.name, one.sums.cycles])), [["s1", 320], ["s0", 110]]);
  assert.deepEqual(plain(tree.pathOf(tree.find("net/s*/x", true)).map((one) => one.sums.cycles)), [431, 431, 430, 400]);
  assert.equal(tree.find("net/other", true), null);
});

test("rows of tiles are cut out of their chunk", async () => {
  const chunks = [Uint8Array.of(0, 1, 2, 3, 4, 5), Uint8Array.of(6, 7, 8)];
  const rows = page.tileRows({ rows: 2, tiles: 3, chunks: [null, null], left_out: false });
  page.unpack = () => Promise.resolve(chunks.shift());
  await rows.load([0, 1, 2, -1]);
  assert.deepEqual([0, 1, 2].map((number) => Array.from(rows.row(number))), [[0, 1, 2], [3, 4, 5], [6, 7, 8]]);
  assert.equal(rows.row(-1), null);
});
