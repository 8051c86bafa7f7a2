// Summary: headline numbers, where the time goes, the longest steps, the target, the graph, the options.

page.facts = (facts) => page.element(
  "dl", { class: "facts" },
  facts.flatMap(({ label, value, unit }) => [
    page.element("dt", {}, label), page.element("dd", { title: page.inFull(value, unit) || null }, page.short(value, unit))]));

page.cards = (facts) => page.element(
  "div", { class: "cards" },
  facts.map(({ label, value, unit }) => page.element(
    "div", { class: "card", title: page.inFull(value, unit) || null }, page.element("b", {}, page.short(value, unit)), page.element("span", {}, label))));

// A bar of parts: [{part: a colour's name, label, cycles}].
page.partsBar = (title, parts) => {
  const total = parts.reduce((sum, one) => sum + one.cycles, 0);
  if (!total) return page.notice(`${title}: no cycles were counted.`);
  const words = ({ label, cycles }) => `${label} ${page.format(cycles / total, "share")} (${page.format(cycles, "cycles")} cycles)`;
  const shown = parts.filter((one) => one.cycles > 0);
  return page.element(
    "div", {},
    page.element("h3", {}, title),
    page.element("div", { class: "bar", role: "img", "aria-label": shown.map(words).join(", ") }, shown.map((one) => page.element(
      "span", { style: `width:${(one.cycles / total) * 100}%;background:var(--${one.part})`, title: words(one) }))),
    page.element("ul", { class: "legend" }, shown.map((one) => page.element(
      "li", {}, page.element("span", { class: "swatch", style: `background:var(--${one.part})` }), words(one)))));
};

page.NOT_RUN = "No execution: the program has not run when this profile was made. Run it with engine.run, then ask for the report.";

if (page.data.kind === "report") {
  page.view("summary", "Summary", (panel) => {
    const summary = page.data.summary;
    panel.append(page.cards(summary.headline));
    panel.append(page.element("h2", {}, "Where the time goes"));
    if (!summary.machine) panel.append(page.notice(page.NOT_RUN));
    else {
      panel.append(page.partsBar("The machine: in each step the slowest tile decides", summary.machine));
      panel.append(page.partsBar("The mean tile", summary.mean_tile));
      panel.append(page.table({
        caption: "Longest steps",
        columns: [
          { name: "number", label: "Step", unit: "count" }, { name: "name", label: "Name", unit: "text" }, { name: "type", label: "Type", unit: "text" },
          { name: "executions", label: "Executions", unit: "count" }, { name: "cycles", label: "Cycles", unit: "cycles" },
          { name: "share", label: "Of all cycles", unit: "share" }, { name: "balance", label: "Tile balance", unit: "share" }],
        rows: summary.longest, sort: "-cycles",
      }));
    }
    const options = summary.options.length ? page.facts(summary.options) : page.notice("No engine options were set.");
    panel.append(page.element(
      "div", { class: "pair" },
      page.element("div", {}, page.element("h2", {}, "Target"), page.facts(summary.target)),
      page.element("div", {}, page.element("h2", {}, "Graph"), page.facts(summary.graph), page.element("h2", {}, "Engine options"), options,
        page.element("h2", {}, "Programs that ran"), page.element("p", {}, summary.programs.length ? summary.programs.map(page.named).join(", ") : "none"))));
  });
}
