// Comparison, summary: the headline numbers of both with their differences, and where the time of both goes.

const MOST_WORDS = 20; // differences in words

// The columns of a table of both: what is in A, in B, and the difference.
page.bothColumns = (number, label, unit) => [
  { name: `a_${number}`, label: `${label}, A`, unit },
  { name: `b_${number}`, label: `${label}, B`, unit },
  { name: "difference", label: "Difference", unit, signed: true, of: (row) => row[`a_${number}`] },
  { name: "percent", label: "Change", unit: "share", signed: true, of: () => 1 },
];

// Facts of both as a plain table.
page.factsOfBoth = (caption, facts, differences) => {
  const difference = (fact) => {
    if (fact.difference === null || fact.difference === undefined) return "";
    if (fact.unit === "share") return `${fact.difference > 0 ? "+" : ""}${page.format(fact.difference, fact.unit)}`;
    const share = fact.percent === null ? "" : ` (${fact.percent > 0 ? "+" : ""}${page.format(fact.percent, "share")})`;
    return fact.difference
      ? `${fact.difference > 0 ? "+" : "-"}${page.short(Math.abs(fact.difference), fact.unit)}${share}`
      : "the same";
  };
  const value = (fact, side) =>
    page.element(
      "td",
      { class: "number", title: fact[side] === null ? null : page.inFull(fact[side], fact.unit) || null },
      fact[side] === null ? "\u2013" : page.short(fact[side], fact.unit),
    );
  const heads = ["", ...page.data.names, ...(differences ? ["Difference"] : [])];
  return page.element(
    "div",
    { class: "table scroll" },
    page.element(
      "table",
      {},
      page.element("caption", {}, caption),
      page.element(
        "thead",
        {},
        page.element(
          "tr",
          {},
          heads.map((one, place) => page.element("th", { scope: "col", class: place ? "number" : "" }, one)),
        ),
      ),
      page.element(
        "tbody",
        {},
        facts.map((fact) =>
          page.element(
            "tr",
            {},
            page.element("th", { scope: "row" }, fact.label),
            value(fact, "a"),
            value(fact, "b"),
            differences ? page.element("td", { class: "number" }, difference(fact)) : null,
          ),
        ),
      ),
    ),
  );
};

if (page.data.kind === "comparison") {
  page.view("summary", "Summary", (panel) => {
    const data = page.data;
    const { notes, rows, none, more } = data.words;
    panel.append(...notes.map((one) => page.notice(one)));
    const line = (one) => page.element("li", { class: one.difference > 0 ? "more" : "less" }, one.words);
    panel.append(
      rows.length
        ? page.element("ul", { class: "words" }, rows.slice(0, MOST_WORDS).map(line))
        : page.notice(none),
    );
    const left = more + Math.max(0, rows.length - MOST_WORDS);
    if (left) panel.append(page.element("p", { class: "quiet" }, `And ${page.format(left)} smaller differences.`));
    panel.append(page.factsOfBoth("Headline numbers", data.headline, true));
    panel.append(page.element("h2", {}, "Where the time goes, on one scale"));
    const whole = Math.max(...data.machine.map((parts) => (parts ?? []).reduce((sum, one) => sum + one.cycles, 0)));
    data.names.forEach((name, side) => {
      panel.append(data.ran[side] ? page.partsBar(name, data.machine[side], whole) : page.notice(`${name}: ${page.NOT_RUN}`));
    });
    data.names.forEach((name, side) => {
      if (data.ran[side]) panel.append(page.partsBar(`The mean tile of ${name}`, data.mean_tile[side], whole));
    });
    panel.append(page.factsOfBoth("Graph", data.graph, true), page.factsOfBoth("Target", data.target, false));
    panel.append(
      data.options.length
        ? page.factsOfBoth("Engine options", data.options, false)
        : page.notice("No engine options were set in either."),
    );
  });
}
