// The canvas of the trace: rulers of microseconds and cycles, the lanes of steps and of critical tiles, the tiles; zoomed and moved by wheel, drag and keys.

const SPACE = { left: 62, right: 10, time: 22, lane: 26, critical: 20, bottom: 40 };
const TILES_TOP = SPACE.time + SPACE.lane + SPACE.critical;

page.rgb = (name) => {
  const hex = page.colour(name);
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
};

// Round numbers between from and to, about `count` of them.
page.ticks = (from, to, count) => {
  const rough = (to - from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? power * 10;
  const ticks = [];
  for (let at = Math.ceil(from / step); at * step <= to; at++) ticks.push(at * step);
  return { ticks, step };
};

// `shown` is what is in view at first, as far as it is given; `changed(view)` hears of another view, `picked(event, tile)` of a click.
page.traceCanvas = (model, { clock, perIpu, shown, changed, picked }) => {
  const canvas = page.element("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": "Execution trace: time to the right, tiles downwards",
  });
  const tip = page.element("div", { class: "tip", hidden: true });
  const box = page.element("div", { class: "trace" }, canvas, tip);
  const raster = page.traceRaster(model);
  const whole = () => ({ from: 0, to: model.length, first: model.firstTile, last: model.lastTile });
  const used = page.usedTiles(
    model.tiles,
    model.steps.flatMap((one) => one.byTile),
  );
  const [first, last] = [Math.max(used[0], model.firstTile), Math.min(used[1], model.lastTile)];
  const usual = first < last ? { ...whole(), first, last } : whole();
  let view = inside({ ...usual, ...shown });
  let waiting = 0;
  let later = 0;
  const size = () => ({
    width: Math.max(60, box.clientWidth - SPACE.left - SPACE.right),
    height: canvas.clientHeight - TILES_TOP - SPACE.bottom,
  });

  function inside(next) {
    const span = Math.min(model.length, Math.max(20, next.to - next.from));
    const from = Math.min(model.length - span, Math.max(0, next.from));
    const tiles = Math.min(model.lastTile - model.firstTile, Math.max(1, Math.round(next.last - next.first)));
    const first = Math.min(model.lastTile - tiles, Math.max(model.firstTile, Math.round(next.first)));
    return { from, to: from + span, first, last: first + tiles };
  }

  function set(next) {
    view = inside(next);
    request();
  }

  function request() {
    if (!waiting)
      waiting = requestAnimationFrame(() => {
        waiting = 0;
        if (!canvas.isConnected || !box.clientWidth) return;
        draw(3); // coarse while it moves
        clearTimeout(later);
        later = setTimeout(() => {
          draw(1);
          changed(view);
        }, 120);
      });
  }

  function zoom(factor, at = 0.5) {
    const span = view.to - view.from;
    set({ ...view, from: view.from + span * at * (1 - factor), to: view.to - span * (1 - at) * (1 - factor) });
  }

  function zoomTiles(factor, at = 0.5) {
    const tiles = view.last - view.first;
    const kept = factor < 1 ? Math.floor(tiles * factor) : Math.ceil(tiles * factor);
    set({ ...view, first: view.first + (tiles - kept) * at, last: view.first + (tiles - kept) * at + kept });
  }

  function move(cyclesShare, tilesShare) {
    const span = (view.to - view.from) * cyclesShare;
    const tiles = Math.round((view.last - view.first) * tilesShare);
    set({ from: view.from + span, to: view.to + span, first: view.first + tiles, last: view.last + tiles });
  }

  function draw(coarse) {
    const begin = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const [full, height] = [box.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(full * ratio)) canvas.width = Math.round(full * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = page.colour("paper");
    pen.fillRect(0, 0, full, height);
    pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
    const area = size();
    drawTiles(pen, area, coarse);
    drawLane(pen, area);
    const lane = { left: SPACE.left, top: SPACE.time + SPACE.lane - 2, width: area.width, height: SPACE.critical };
    page.drawCritical(pen, model, view, lane);
    drawRulers(pen, area);
    Object.assign(canvas.dataset, {
      from: view.from,
      to: view.to,
      first: view.first,
      last: view.last,
      milliseconds: performance.now() - begin,
      drawn: "true",
    });
  }

  function drawTiles(pen, area, coarse) {
    const rows = Math.max(1, Math.min(view.last - view.first, Math.floor(area.height / coarse)));
    const colours = { phases: PHASES.map(({ name }) => page.rgb(name)), idle: page.rgb("waiting"), blank: page.rgb("paper") };
    const image = raster(view, Math.round(area.width), rows, colours);
    const holder = new OffscreenCanvas(image.width, image.height);
    holder.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(holder, SPACE.left, TILES_TOP, area.width, area.height);
  }

  // The lane of steps, each in the colour of its longest phase; what is narrower than a pixel mixes with its neighbours in it.
  function drawLane(pen, area) {
    const scale = area.width / (view.to - view.from);
    const [top, high] = [SPACE.time + 2, SPACE.lane - 6];
    const mixed = { pixel: -1, width: 0, sums: [0, 0, 0] };
    const flush = () => {
      if (mixed.width > 0) {
        pen.fillStyle = `rgb(${mixed.sums.map((one) => Math.round(one / mixed.width)).join(",")})`;
        pen.fillRect(mixed.pixel, top, 1, high);
      }
      mixed.width = 0;
      mixed.sums.fill(0);
    };
    pen.save();
    pen.beginPath();
    pen.rect(SPACE.left, SPACE.time, area.width, SPACE.lane);
    pen.clip();
    pen.textBaseline = "middle";
    for (let event = page.eventAt(model, view.from); event < model.end.length && model.begin[event] < view.to; event++) {
      const left = SPACE.left + (model.begin[event] - view.from) * scale;
      const wide = (model.end[event] - model.begin[event]) * scale;
      const step = model.steps[model.step[event]];
      const colour = (page.laneColours[step.longest] ??= page.rgb(PHASES[step.longest].name));
      if (Math.floor(left) !== mixed.pixel || wide >= 1) flush();
      if (wide < 1) {
        mixed.pixel = Math.floor(left);
        mixed.width += wide;
        colour.forEach((one, place) => (mixed.sums[place] += one * wide));
        continue;
      }
      pen.fillStyle = `rgb(${colour.join(",")})`;
      pen.fillRect(left, top, Math.max(1, wide - (wide > 4 ? 1 : 0)), high);
      if (wide > 40) label(pen, page.named(step.name), left, wide, top);
    }
    flush();
    pen.restore();
  }

  function label(pen, text, left, wide, top) {
    const begin = Math.max(left, SPACE.left) + 4;
    const most = Math.floor((left + wide - begin - 4) / 7);
    if (most < 3) return;
    pen.fillStyle = page.colour("paper");
    pen.fillText(text.length > most ? `${text.slice(0, most - 1)}\u2026` : text, begin, top + (SPACE.lane - 6) / 2);
  }

  function drawRulers(pen, area) {
    const bottom = TILES_TOP + area.height;
    pen.fillStyle = page.colour("muted");
    pen.strokeStyle = page.colour("line");
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    const place = (cycle) => SPACE.left + ((cycle - view.from) / (view.to - view.from)) * area.width;
    const inside = (x, text) =>
      Math.min(
        SPACE.left + area.width - pen.measureText(text).width / 2,
        Math.max(SPACE.left + pen.measureText(text).width / 2, x),
      );
    for (const cycle of page.ticks(view.from, view.to, area.width / 120).ticks) {
      const text = page.format(cycle);
      pen.fillRect(place(cycle), bottom, 1, 5);
      pen.fillText(text, inside(place(cycle), text), bottom + 18);
    }
    pen.fillText("cycles", SPACE.left + area.width / 2, bottom + 34);
    if (clock) {
      const scale = 1e6 / clock;
      const { ticks, step } = page.ticks(view.from * scale, view.to * scale, area.width / 120);
      for (const time of ticks) {
        const text = `${time.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, Math.ceil(-Math.log10(step))) })} \u00b5s`;
        pen.fillText(text, inside(place(time / scale), text), 14);
      }
    }
    pen.textAlign = "right";
    const tileAt = (tile) => TILES_TOP + ((tile - view.first) / (view.last - view.first)) * area.height;
    for (const tile of page.ticks(view.first, view.last - 1, area.height / 50).ticks.filter(Number.isInteger))
      pen.fillText(page.format(tile), SPACE.left - 8, tileAt(tile + 0.5) + 4);
    pen.fillText("steps", SPACE.left - 8, SPACE.time + SPACE.lane / 2 + 3);
    pen.fillText("slowest", SPACE.left - 8, SPACE.time + SPACE.lane + SPACE.critical / 2 + 3);
    for (let tile = perIpu; tile < model.tiles; tile += perIpu)
      if (tile > view.first && tile < view.last) pen.fillRect(SPACE.left, tileAt(tile), area.width, 1);
    pen.save();
    pen.translate(13, TILES_TOP + area.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText("tile", 0, 0);
    pen.restore();
    pen.textAlign = "left";
  }

  // What is under the pointer: cycle, tile, event, phase.
  function under(event) {
    const area = size();
    const bounds = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left - SPACE.left, event.clientY - bounds.top - TILES_TOP];
    return {
      x,
      y,
      across: x / area.width,
      down: y / area.height,
      rows: Math.max(1, Math.min(view.last - view.first, Math.floor(area.height))),
      inside: x >= 0 && x < area.width && y >= -SPACE.lane - SPACE.critical && y < area.height,
    };
  }

  page.traceInput(canvas, {
    under,
    zoom,
    zoomTiles,
    move,
    reset: () => set(whole()),
    pick: (event) => {
      const { event: found, tile } = page.traceUnder(model, view, under(event));
      if (found !== null) picked(found, tile);
    },
    show: (event) => page.traceTip(tip, box, model, clock, view, under(event), event),
  });
  new ResizeObserver(request).observe(box);
  return { box, canvas, set, zoom, zoomTiles, move, reset: () => set(whole()), draw: () => draw(1), view: () => view, usual };
};

page.laneColours = {};
