// Plotly in the page's colours. Text of the user's that goes into a plot passes page.label first.

// Plotly is large: it is packed until the first plot needs it. The page's policy knows it by its digest.
let plotlyOnce;
page.needPlotly = () => (plotlyOnce ??= addPlotly());

async function addPlotly() {
  const script = await inflated(document.getElementById("plotly")).text();
  document.head.append(page.element("script", {}, script));
}

const SERIES = 10; // colours
page.series = (place) => page.colour(`series${place % SERIES}`);

page.axis = (title, more = {}) => ({
  title: { text: title, standoff: 8 },
  gridcolor: page.colour("line"),
  linecolor: page.colour("line"),
  zerolinecolor: page.colour("line"),
  automargin: true,
  separatethousands: true,
  exponentformat: "none",
  ...more,
});

// Buttons of Plotly's that a plot does without: "Share chart" would send the user's data to another host.
const WITHOUT = ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud", "sendChartToCloud", "editInChartStudio"];

// A figure with a plot in it. Call `await figure.draw(traces, layout)` once it is in the document.
page.figure = (caption, size = "") => {
  const box = page.element("div", { class: `plot ${size}`, role: "img", "aria-label": caption });
  const words = page.element("figcaption", {}, caption);
  const figure = page.element("figure", {}, box, words);
  figure.box = box;
  figure.say = (more) => (words.textContent = caption + more);
  figure.draw = async (traces, layout) => {
    await page.needPlotly();
    await Plotly.react(
      box,
      traces,
      {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: page.colour("ink"), family: 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif', size: 13 },
        colorway: Array.from({ length: SERIES }, (_, place) => page.series(place)),
        margin: { l: 60, r: 44, t: 14, b: 48 },
        modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: page.colour("muted"), activecolor: page.colour("ink") },
        hoverlabel: {
          bgcolor: page.colour("paper"),
          bordercolor: page.colour("line"),
          font: { color: page.colour("ink") },
          align: "left",
        },
        legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } },
        ...layout,
      },
      { responsive: true, displaylogo: false, modeBarButtonsToRemove: WITHOUT },
    );
    box.dataset.drawn = "true";
  };
  figure.on = (event, then) => box.on(event, then);
  return figure;
};

// What an address asks to see of an axis, and how what is zoomed into becomes an address. `figure.whole` is the range without zoom.
page.zoom = (figure) => {
  figure.on("plotly_relayout", (change) => {
    const range = [0, 1].map((end) => change[`xaxis.range[${end}]`] ?? change["xaxis.range"]?.[end]);
    const left = change["xaxis.autorange"] || range.every((one, end) => Math.abs(one - figure.whole[end]) < 1e-6);
    if (left || range[0] !== undefined)
      page.remember(
        Object.fromEntries(["from", "to"].map((name, end) => [name, left ? "" : Math.round(range[end] * 10) / 10])),
        true,
      );
  });
};
page.zoomed = (figure) => {
  const range = ["from", "to"].map((name) => Number(page.parameters()[name] ?? NaN));
  return range.every(Number.isFinite) && range[0] < range[1] ? range : [...figure.whole]; // Plotly changes it
};

// Bars from the longest down, with names as labels; rows: [{name, value}].
page.bars = async (figure, rows, title, colour, most = 15) => {
  const shown = rows.slice(0, most).reverse();
  figure.box.style.height = `${Math.max(9, 3.8 + 1.55 * shown.length)}rem`;
  await figure.draw(
    [
      {
        type: "bar",
        orientation: "h",
        x: shown.map((one) => one.value),
        y: shown.map((_, place) => place),
        marker: { color: colour },
        hovertext: shown.map((one) => `${page.label(page.named(one.name), 120)}<br>${page.format(one.value)}`),
        hoverinfo: "text",
        textposition: "none",
      },
    ],
    {
      xaxis: page.axis(title, { rangemode: "tozero", tickangle: 0, nticks: page.narrow() ? 4 : 10 }),
      yaxis: page.axis("", {
        tickvals: shown.map((_, place) => place),
        ticktext: shown.map((one) => page.label(page.named(one.name), page.narrow() ? 16 : 44)),
        fixedrange: true,
      }),
      bargap: 0.25,
    },
  );
};

page.narrow = () => window.innerWidth < 700;

// From the first to the last tile that has something in one of the arrays, as [first, end]; all tiles if that is most of them,
// or if there are few.
/** @param {number} tiles @param {(ArrayLike<number> | null)[]} arrays @returns {[number, number]} */
page.usedTiles = (tiles, arrays) => {
  if (tiles <= 64) return [0, tiles];
  let [first, end] = [tiles, 0];
  for (const values of arrays) {
    if (!values) continue;
    for (let tile = 0; tile < first; tile++) if (values[tile]) first = tile;
    for (let tile = values.length - 1; tile >= end; tile--) if (values[tile]) end = tile + 1;
  }
  return end - first > 0.6 * tiles || end <= first ? [0, tiles] : [first, end];
};

/** @param {[number, number]} shown @param {number} tiles @returns {string} */
page.someTiles = ([first, end], tiles) => {
  if (end - first === tiles) return "";
  const shown =
    end - first === 1 ? `Shown is tile ${page.format(first)}` : `Shown are tiles ${page.format(first)} to ${page.format(end - 1)}`;
  return ` ${shown}, the others have nothing.`;
};

/** @param {[number, number]} shown */
page.tileAxis = ([first, end], title = "tile") =>
  page.axis(title, {
    range: [first - 0.5, end - 0.5],
    tickformat: ",d",
    ...(end - first < 12 ? { dtick: 1 } : {}),
    zeroline: false,
  });

// A number of each tile, as bars where there are few tiles and as lines where there are many; series: [{name, values, colour}].
// `zooms` says that the address has what is zoomed into.
page.byTile = async (figure, tiles, series, title, { zooms = false, ...more } = {}) => {
  const shown = page.usedTiles(
    tiles,
    series.map((one) => one.values),
  );
  figure.say(page.someTiles(shown, tiles));
  const axis = page.tileAxis(shown);
  figure.whole = [...axis.range];
  const bars = shown[1] - shown[0] <= 64;
  await figure.draw(
    series.map(({ name, values, colour, digits = 0 }) => ({
      name,
      y: values,
      hovertemplate: `%{y:,.${digits}f} ${title}`,
      ...(bars
        ? { type: "bar", marker: { color: colour } }
        : { type: "scatter", mode: "lines", line: { width: 1.2, shape: "hvh", color: colour } }),
    })),
    {
      xaxis: { ...axis, range: zooms ? page.zoomed(figure) : axis.range },
      yaxis: page.axis(title, { rangemode: "tozero", fixedrange: true }),
      hovermode: "x unified",
      barmode: "group",
      bargap: 0.25,
      showlegend: true,
      ...more,
    },
  );
};
