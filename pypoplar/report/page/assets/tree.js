// The program tree: nodes in the order of a walk. Null where the report has none.

let treeOnce;
page.tree = () => (treeOnce ??= readTree());

async function readTree() {
  if (!page.data.tree) return null;
  const columns = await page.unpack(page.data.tree);
  const children = columns.parent.map(() => []);
  const roots = [];
  columns.parent.forEach((above, node) => (above < 0 ? roots : children[above]).push(node));
  columns.again.forEach((first, node) => {
    if (first >= 0) children[node] = children[first]; // what stands in several places is listed once
  });
  const title = (node) => [columns.type[node], columns.name[node], columns.detail[node]].filter(Boolean).join(" \u00b7 ");
  return {
    ...columns,
    roots,
    children,
    title,
    // From the root to the first leaf that is this static step, in words.
    path(step) {
      const found = [];
      for (let node = columns.step.indexOf(step); node >= 0; node = columns.parent[node]) found.unshift(title(node));
      return found;
    },
  };
}
