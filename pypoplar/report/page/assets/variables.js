// The variables of the graph: where they lie, when they live. Null where the report does not say.

let variablesOnce;
page.variables = () => (variablesOnce ??= readVariables());

async function readVariables() {
  if (!page.data.variables) return null;
  const read = await page.unpackAll(page.data.variables);
  const row = (number, size) => ({
    number,
    name: page.named(read.names[number]),
    bytes: size,
    made_at: read.made_at[number] ?? "",
    always: Boolean(read.always[number]),
    life: read.always[number] ? "always" : lives(number),
  });
  function lives(number) {
    const told = [];
    for (let at = read.first_life[number]; at < read.first_life[number + 1]; at++)
      if (read.life_begin[at] < read.life_end[at]) told.push(`${read.life_begin[at]} to ${read.life_end[at] - 1}`);
    if (told.length) return `steps ${told.join(", ")}`;
    return read.life_begin.length ? "never" : "at times";  // a program that does not fit has no steps
  }
  function livesAt(number, step) {
    for (let at = read.first_life[number]; at < read.first_life[number + 1]; at++)
      if (read.life_begin[at] <= step && step < read.life_end[at]) return true;
    return false;
  }
  return {
    ...read,
    ofTile(tile) {
      const rows = [];
      for (let number = 0, at = 0; number < read.names.length; number++) {
        let size = 0;
        for (; at < read.first[number + 1]; at++) if (read.tile[at] === tile) size += read.bytes[at];
        if (size) rows.push(row(number, size));
      }
      return rows;
    },
    // What lies where in a tile's memory: rows with the addresses at which they begin and end; null where that is not known.
    atAddresses(tile) {
      if (!read.offset) return null;
      const rows = [];
      for (let number = 0, at = 0; number < read.names.length; number++)
        for (; at < read.first[number + 1]; at++)
          if (read.tile[at] === tile && read.bytes[at]) {
            const begin = read.offset[at];
            const [first, end] = [read.first_life[number], read.first_life[number + 1]];
            const lives = Array.from({ length: end - first }, (_, one) => [read.life_begin[first + one], read.life_end[first + one]]);
            rows.push({ ...row(number, read.bytes[at]), begin, end: begin + read.span[at], lives, shares: 0 });
          }
      rows.sort((one, other) => one.begin - other.begin || one.number - other.number);
      const begins = rows.map((one) => one.begin);
      const ends = rows.map((one) => one.end).sort((one, other) => one - other);
      for (const one of rows) one.shares = below(begins, one.end) - below(ends, one.begin + 1) - 1;
      return rows;
    },
    atStep(step) {
      const rows = [];
      for (let number = 0; number < read.names.length; number++) {
        if (livesAt(number, step)) rows.push(row(number, read.total[number]));
      }
      return rows;
    },
    // A variable, with the tiles that it lies on, from the one that holds the most of it; null where they are not known.
    called(number) {
      const tiles = [];
      for (let at = read.first?.[number]; at < read.first?.[number + 1]; at++) tiles.push([read.tile[at], read.bytes[at]]);
      return { ...row(number, read.total[number]), tiles: read.tile && tiles.sort((one, other) => other[1] - one[1]) };
    },
    alwaysLive() {
      return read.names
        .map((_, number) => number)
        .filter((number) => read.always[number])
        .map((number) => row(number, read.total[number]));
    },
  };
}

// How many of some sorted numbers are less than `limit`.
/** @param {ArrayLike<number>} sorted @param {number} limit @returns {number} */
function below(sorted, limit) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

// What lies at each address of a tile, with what nothing is said to lie at.
page.addressTable = (caption, rows) => {
  const told = [];
  let reached = 0;
  for (const one of rows) {
    if (one.begin > reached)
      told.push({ begin: reached, end: one.begin, bytes: one.begin - reached, name: "(no variable)", life: "", shares: 0, made_at: "" });
    told.push(one);
    reached = Math.max(reached, one.end);
  }
  return page.table({
    caption,
    rows: told,
    sort: "begin",
    empty: "no variables",
    columns: [
      { name: "begin", label: "From", unit: "count", title: "address of the first byte in the tile's memory" },
      { name: "end", label: "To", unit: "count", title: "address behind the last byte" },
      { name: "bytes", label: "Bytes", unit: "bytes" },
      { name: "name", label: "Variable", unit: "text", link: ({ number }) => (number === undefined ? null : page.address("liveness", { variable: number })) },
      { name: "life", label: "Lives", unit: "text" },
      { name: "shares", label: "Shared with", unit: "count", title: "others that lie on some of these addresses at other times" },
    ],
  });
};

page.variableTable = (caption, rows) =>
  page.table({
    caption,
    rows,
    sort: "-bytes",
    empty: "no variables",
    columns: [
      { name: "name", label: "Variable", unit: "text", link: ({ number }) => page.address("liveness", { variable: number }) },
      { name: "bytes", label: "Bytes", unit: "bytes" },
      { name: "life", label: "Lives", unit: "text" },
      { name: "made_at", label: "Made at", unit: "text", title: "the line of your code that made it" },
    ],
  });
