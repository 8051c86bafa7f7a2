// Facts, cards and bars, which several views show.

page.facts = (facts) =>
  page.element(
    "dl",
    { class: "facts" },
    facts.flatMap(({ label, value, unit }) => [
      page.element("dt", {}, label),
      page.element("dd", { title: page.inFull(value, unit) || null }, page.short(value, unit)),
    ]),
  );

page.cards = (facts) =>
  page.element(
    "div",
    { class: "cards" },
    facts.map(({ label, value, unit }) =>
      page.element(
        "div",
        { class: "card", title: page.inFull(value, unit) || null },
        page.element("b", {}, page.short(value, unit)),
        page.element("span", {}, label),
      ),
    ),
  );

// A bar of parts: [{part: a colour's name, label, cycles}]; as wide as `whole` would be, if that is more than its own.
page.partsBar = (title, parts, whole = 0) => {
  const total = parts.reduce((sum, one) => sum + one.cycles, 0);
  if (!total) return page.notice(`${title}: no cycles were counted.`);
  const words = ({ label, cycles }) => `${label} ${page.format(cycles / total, "share")} (${page.format(cycles, "cycles")} cycles)`;
  const shown = parts.filter((one) => one.cycles > 0);
  return page.element(
    "div",
    {},
    page.element("h3", {}, title),
    page.element(
      "div",
      {
        class: "bar",
        role: "img",
        "aria-label": shown.map(words).join(", "),
        style: whole > total ? `width:${(total / whole) * 100}%` : null,
      },
      shown.map((one) =>
        page.element("span", { style: `width:${(one.cycles / total) * 100}%;background:var(--${one.part})`, title: words(one) }),
      ),
    ),
    page.element(
      "ul",
      { class: "legend" },
      shown.map((one) =>
        page.element("li", {}, page.element("span", { class: "swatch", style: `background:var(--${one.part})` }), words(one)),
      ),
    ),
  );
};

// Why there are no cycles: the program has not run, or what has run has no steps.
page.noCycles = () => (page.data.summary.machine ? "The program has run, and no step was executed: 0 cycles." : page.NOT_RUN);

page.NOT_RUN = "No execution: the program has not run when this profile was made. Run it with engine.run, then ask for the report.";
