// Paints the events of a trace into pixels: columns of time, rows of tiles, each pixel the mixture of what happens in it.
// Events that lie within a column are added up by step first, so that the work grows with the pixels, not with the events.

const SPANS = [[EXCHANGE, COPIES].filter((phase) => phase >= 0), [COMPUTE]]; // phases in one span of an event

// The first tile of a row and the one after its last.
/** @param {number} row @param {number} first @param {number} last @param {number} rows @returns {[number, number]} */
page.tilesOfRow = (row, first, last, rows) => {
  const from = first + Math.floor((row * (last - first)) / rows);
  return [from, Math.max(from + 1, first + Math.floor(((row + 1) * (last - first)) / rows))];
};

// Of some tiles the one on which phases of a step take longest together.
/** @param {Doing} step @param {number[]} phases @param {number} from @param {number} to @returns {number} */
page.slowestTile = (step, phases, from, to) => {
  let slowest = from;
  let most = -1;
  for (let tile = from; tile < to; tile++) {
    let cycles = 0;
    for (const phase of phases) cycles += step.byTile[phase][tile];
    if (cycles > most) [slowest, most] = [tile, cycles];
  }
  return slowest;
};

page.traceRaster = (model) => {
  const cached = { key: "", shares: new Map() };

  // Shares of a step's phases by row: of the slowest of the row's tiles. A number where all rows are equal.
  function shares(place, first, last, rows) {
    const key = `${first} ${last} ${rows}`;
    if (cached.key !== key) {
      cached.key = key;
      cached.shares.clear();
    }
    let found = cached.shares.get(place);
    if (!found) {
      const step = model.doings[place];
      found = step.evenly.slice();
      for (const span of SPANS) {
        const phases = span.filter((phase) => step.byTile[phase] && step.whole[phase]);
        if (phases.length) fillSlowest(found, step, phases, first, last, rows);
      }
      cached.shares.set(place, found);
    }
    return found;
  }

  // The shares of phases that follow each other on a tile: of one tile in each row, the one on which they take longest together.
  function fillSlowest(found, step, phases, first, last, rows) {
    for (const phase of phases) found[phase] = new Float32Array(rows);
    for (let row = 0; row < rows; row++) {
      const slowest = page.slowestTile(step, phases, ...page.tilesOfRow(row, first, last, rows));
      for (const phase of phases) found[phase][row] = Math.min(1, step.byTile[phase][slowest] / step.whole[phase]);
    }
  }

  // view: {from, to} in cycles, {first, last} in tiles. colours: [r, g, b] by phase, and of idle and blank.
  return (view, width, rows, colours) => {
    const image = new ImageData(width, rows);
    const cycles = (view.to - view.from) / width;
    const sums = PHASES.map(() => new Float32Array(rows));
    const even = new Float64Array(PHASES.length);
    const weights = PHASES.map(() => new Float64Array(model.doings.length));
    const touched = [];
    const seen = new Uint8Array(model.doings.length);
    const parts = new Float64Array(PHASES.length);
    let next = page.eventAt(model, view.from);

    for (let column = 0; column < width; column++) {
      const from = view.from + column * cycles;
      const to = from + cycles;
      for (const one of sums) one.fill(0);
      even.fill(0);
      let covered = 0;
      while (next < model.end.length && model.end[next] <= from) next++;
      for (let event = next; event < model.end.length && model.begin[event] < to; event++) {
        const place = model.doing[event];
        page.eventPhases(model, event, parts);
        covered += Math.min(to, model.end[event]) - Math.max(from, model.begin[event]);
        if (model.begin[event] >= from && model.end[event] <= to) {
          for (let phase = 0; phase < parts.length; phase++) weights[phase][place] += page.phaseSpan(parts, phase);
          if (!seen[place]) touched.push(place);
          seen[place] = 1;
        } else addPart(event, place, from, to);
      }
      for (const place of touched) addWhole(place);
      touched.length = 0;
      paint(column, covered);
    }
    return image;

    // An event that a column cuts: the part of each phase that lies in it, which differs from tile to tile.
    function addPart(event, place, from, to) {
      const share = shares(place, view.first, view.last, rows);
      let begin = model.begin[event];
      for (let phase = 0; phase < parts.length; phase++) {
        const length = page.phaseSpan(parts, phase);
        if (length > 0 && begin < to && begin + length > from) {
          const before = phase === COPIES ? share[EXCHANGE] : 0;
          if (typeof share[phase] === "number" && typeof before === "number")
            even[phase] += inside(begin + length * before, length * share[phase], from, to);
          else if (before === 0) addRows(sums[phase], begin, length, share[phase], from, to);
          else addRowsAfter(sums[phase], begin, length, share[phase], before, from, to);
        }
        if (phase !== EXCHANGE || COPIES < 0) begin += length;
      }
    }

    function inside(begin, length, from, to) {
      return Math.max(0, Math.min(to, begin + length) - Math.max(from, begin));
    }

    function addRows(sum, begin, length, share, from, to) {
      const least = Math.max(from, begin);
      for (let row = 0; row < rows; row++) {
        const part = Math.min(to, begin + length * share[row]) - least;
        if (part > 0) sum[row] += part;
      }
    }

    // Each row begins when it is done with what was `before`; either may be one number for all rows.
    function addRowsAfter(sum, begin, length, share, before, from, to) {
      for (let row = 0; row < rows; row++) {
        const start = begin + length * (before[row] ?? before);
        sum[row] += inside(start, length * (share[row] ?? share), from, to);
      }
    }

    function addWhole(place) {
      const share = shares(place, view.first, view.last, rows);
      for (let phase = 0; phase < parts.length; phase++) {
        const weight = weights[phase][place];
        weights[phase][place] = 0;
        if (!weight) continue;
        if (typeof share[phase] === "number") even[phase] += weight * share[phase];
        else for (let row = 0, sum = sums[phase], one = share[phase]; row < rows; row++) sum[row] += weight * one[row];
      }
      seen[place] = 0;
    }

    function paint(column, covered) {
      const pixels = image.data;
      for (let row = 0, at = column * 4; row < rows; row++, at += width * 4) {
        let idle = covered;
        let red = (cycles - covered) * colours.blank[0];
        let green = (cycles - covered) * colours.blank[1];
        let blue = (cycles - covered) * colours.blank[2];
        for (let phase = 0; phase < even.length; phase++) {
          const amount = even[phase] + sums[phase][row];
          if (!amount) continue;
          const colour = colours.phases[phase];
          red += amount * colour[0];
          green += amount * colour[1];
          blue += amount * colour[2];
          idle -= amount;
        }
        if (idle < 0) idle = 0;
        pixels[at] = (red + idle * colours.idle[0]) / cycles;
        pixels[at + 1] = (green + idle * colours.idle[1]) / cycles;
        pixels[at + 2] = (blue + idle * colours.idle[2]) / cycles;
        pixels[at + 3] = 255;
      }
    }
  };
};
