// The trace's mouse, wheel and keys, and the box that says what is under the pointer.

page.traceInput = (canvas, { under, zoom, zoomTiles, move, reset, show, pick }) => {
  let held = null;
  let moved = false;
  canvas.addEventListener(
    "wheel",
    (event) => {
      const at = under(event);
      if (!at.inside) return;
      event.preventDefault();
      const turned = event.deltaY || event.deltaX;
      const factor = Math.exp(Math.sign(turned) * Math.min(0.5, Math.abs(turned) / 300));
      if (event.shiftKey) zoomTiles(factor, Math.max(0, at.down));
      else zoom(factor, at.across);
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 0) {
      held = under(event);
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && !moved) pick(event);
    held = null;
  });
  canvas.addEventListener("pointercancel", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    if (held) {
      const now = under(event);
      moved ||= Math.abs(held.x - now.x) + Math.abs(held.y - now.y) > 3;
      move(held.across - now.across, held.down - now.down);
      if (Math.abs(held.down - now.down) > 0.01) held.down = now.down;
      held.across = now.across;
    }
    show(event);
  });
  canvas.addEventListener("pointerleave", show);
  canvas.addEventListener("dblclick", reset);
  canvas.addEventListener("keydown", (event) => {
    const keys = {
      "+": () => zoom(0.7),
      "=": () => zoom(0.7),
      "-": () => zoom(1 / 0.7),
      0: reset,
      ArrowLeft: () => move(-0.1, 0),
      ArrowRight: () => move(0.1, 0),
      ArrowUp: () => move(0, -0.1),
      ArrowDown: () => move(0, 0.1),
      PageUp: () => zoomTiles(0.5),
      PageDown: () => zoomTiles(2),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
};

// The event and the tile at a place of the canvas; null where there is none.
page.traceUnder = (model, view, at) => {
  const cycle = view.from + at.across * (view.to - view.from);
  const found = page.eventAt(model, cycle);
  const there = at.inside && found < model.end.length && model.begin[found] <= cycle;
  if (!there || at.down < 0) return { event: there ? found : null, tile: null };
  const row = Math.min(at.rows - 1, Math.floor(at.down * at.rows));
  const [from, to] = page.tilesOfRow(row, view.first, view.last, at.rows);
  return { event: found, tile: page.slowestInEvent(page.doingOf(model, found), from, to) };
};

// Of the tiles of a row the one that it shows: the slowest in the phases that the step is about.
page.slowestInEvent = (step, from, to) => {
  const known = (phases) => phases.filter((phase) => step.byTile[phase] && step.whole[phase]);
  const phases = SPANS.map(known).find((span) => span.length && span.includes(step.longest)) ?? known(SPANS.flat());
  return phases.length ? page.slowestTile(step, phases, from, to) : from;
};

// What a tile does in an event, in words.
page.tileWords = (model, event, tile) => {
  const step = page.doingOf(model, event);
  const parts = page.eventPhases(model, event, new Float64Array(PHASES.length));
  const words = PHASES.map(({ label }, phase) => [
    label[0].toLowerCase() + label.slice(1),
    page.phaseSpan(parts, phase) * page.tileShare(step, phase, tile),
  ]).filter(([, cycles]) => cycles >= 0.5);
  return words.map(([phase, cycles]) => `${phase} ${page.format(cycles)}`).join(", ") || "waiting";
};

page.traceTip = (tip, box, model, clock, view, at, event) => {
  const { event: found, tile } = page.traceUnder(model, view, at);
  tip.hidden = found === null;
  if (tip.hidden) return;
  const step = page.doingOf(model, found);
  const length = model.end[found] - model.begin[found];
  const line = (...words) => page.element("div", {}, ...words);
  const lines = [
    line(page.element("strong", {}, page.named(step.name))),
    line(`${step.type}, step ${page.format(step.number)}`),
    line(
      `at cycle ${page.format(Math.round(model.begin[found]))}, ${page.format(length)} cycles${clock ? `, ${page.short(length / clock, "seconds")}` : ""}`,
    ),
  ];
  if (step.critical >= 0) lines.push(line(`slowest: tile ${page.format(step.critical)}`));
  if (tile !== null) lines.push(line(`tile ${page.format(tile)}: ${page.tileWords(model, found, tile)}`));
  tip.replaceChildren(...lines);
  const bounds = box.getBoundingClientRect();
  const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
  tip.style.left = `${Math.max(4, Math.min(x + 14, bounds.width - tip.offsetWidth - 6))}px`;
  tip.style.top = `${y + 16 + tip.offsetHeight < bounds.height ? y + 16 : Math.max(4, y - tip.offsetHeight - 10)}px`;
};
