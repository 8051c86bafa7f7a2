// Comparison, steps: the steps of both programs, matched by type and name.

if (page.data.kind === "comparison") {
  page.view("steps", "Steps", async (panel) => {
    const steps = await page.unpack(page.data.steps);
    if (!steps) return panel.append(page.notice("Steps cannot be compared: at least one of the two has not run."));
    const only = (side) => steps.filter((one) => one[`${side}_step`] === null).length;
    panel.append(
      page.element(
        "p",
        { class: "quiet" },
        `Steps of the same type and name stand in one row; the second of a name with the second. ${page.format(only("b"))} are only in A, ${page.format(only("a"))} only in B.`,
      ),
      page.table({
        caption: "Steps",
        columns: [
          { name: "a_step", label: "Step, A", unit: "count" },
          { name: "b_step", label: "Step, B", unit: "count" },
          { name: "type", label: "Type", unit: "text" },
          { name: "name", label: "Name", unit: "text" },
          ...page.bothColumns("cycles", "Cycles", "cycles"),
          { name: "a_executions", label: "Executions, A", unit: "count" },
          { name: "b_executions", label: "Executions, B", unit: "count" },
        ],
        rows: steps.map((one) => ({ ...one, name: page.named(one.name) })),
      }),
    );
  });
}
