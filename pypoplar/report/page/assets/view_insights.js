// Insights: what the report says in words, and what to try.

if (page.data.kind === "report") {
  page.view("insights", "Insights", (panel) => {
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        "Findings from this profile, those that could save the most first. Each names what was seen, what it could save at most, and what to try.",
      ),
    );
    if (!page.data.insights.length) panel.append(page.notice("Nothing was found that is worth a word."));
    for (const one of page.data.insights) {
      panel.append(
        page.element(
          "article",
          { class: `insight ${one.weight.split(" ")[0]}` },
          page.element("span", { class: "weight" }, `${one.weight}, ${saving(one)}`),
          page.element("h3", {}, one.title),
          page.element("p", {}, one.text),
          one.advice ? page.element("p", {}, page.element("strong", {}, "Try: "), one.advice) : null,
          page.element("a", { href: `#${one.link}` }, "Show"),
          one.lines ? [" ", page.element("a", { href: `#${one.lines}` }, "Lines")] : null,
        ),
      );
    }
    if (!page.data.summary.machine) panel.append(page.notice(page.NOT_RUN));
  });

  function saving(finding) {
    return `up to ${page.format(finding.share, "share")} of ${finding.of_memory ? "a tile's memory" : "all cycles"}`;
  }
}
