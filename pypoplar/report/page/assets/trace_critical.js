// The lane of critical tiles: the tile that each step waits for, as a line at its place among all tiles, and by its number where
// there is room. Steps that all tiles go through alike have none.

page.drawCritical = (pen, model, view, { left, top, width, height }) => {
  const scale = width / (view.to - view.from);
  const spread = Math.max(1, model.lastTile - model.firstTile - 1);
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.fillStyle = page.colour("raised");
  pen.fillRect(left, top, width, height);
  pen.fillStyle = page.colour("ink");
  pen.textBaseline = "middle";
  const drawn = { pixel: -1, tile: -1 };
  for (let event = page.eventAt(model, view.from); event < model.end.length && model.begin[event] < view.to; event++) {
    const tile = page.doingOf(model, event).critical;
    if (tile < 0) continue;
    const begin = left + (model.begin[event] - view.from) * scale;
    const wide = (model.end[event] - model.begin[event]) * scale;
    const pixel = Math.floor(begin);
    if (wide < 1 && drawn.pixel === pixel && drawn.tile === tile) continue;
    Object.assign(drawn, { pixel, tile });
    const text = `tile ${page.format(tile)}`;
    const seen = Math.max(begin, left);
    if (begin + wide - seen > pen.measureText(text).width + 8) pen.fillText(text, seen + 4, top + height / 2);
    else pen.fillRect(begin, top + Math.round(((tile - model.firstTile) / spread) * (height - 2)), Math.max(1, wide), 2);
  }
  pen.restore();
};
