// The tree of names with its sums. A row stands for nodes: for one, or for all that fold into it; its key is its path.
// `columns` are the data's numbers by node, which add up; `more(sums)` adds to a row's what follows from them.
page.nameTree = (data, columns, more) => {
  const children = data.name.map(() => []);
  data.parent.forEach((above, node) => above >= 0 && children[above].push(node));
  const whole = {};
  for (const name of columns) {
    const sums = Float64Array.from(data.name, (_, node) => data[name]?.[node] ?? 0);
    for (let node = sums.length - 1; node > 0; node--) sums[data.parent[node]] += sums[node];
    whole[name] = sums;
  }

  function row(nodes, name, above) {
    const sums = Object.fromEntries(
      columns.map((name) => [name, nodes.reduce((sum, node) => sum + whole[name][node], 0)]),
    );
    more(sums);
    const title = above ? `${page.named(name)}${nodes.length > 1 ? ` (${page.format(nodes.length)})` : ""}` : "all";
    const key = above ? (above.above ? `${above.key}/${name}` : name || "/") : "";
    return { nodes, name, above, sums, title, key, below: new Map() };
  }

  const root = row([0], "", null);

  // The rows below one, the largest first.
  function below(above, by, fold) {
    const kept = `${by} ${fold}`;
    if (!above.below.has(kept)) {
      const groups = new Map();
      for (const node of above.nodes)
        for (const child of children[node]) {
          const name = (fold && data.fold[child]) || data.name[child];
          if (!groups.has(name)) groups.set(name, []);
          groups.get(name).push(child);
        }
      const rows = Array.from(groups, ([name, nodes]) => row(nodes, name, above));
      above.below.set(kept, rows.sort((one, other) => other.sums[by] - one.sums[by]));
    }
    return above.below.get(kept);
  }

  return {
    root,
    below,
    // The row of a path, null where there is none. A name has no slash in it, but for the last one of a path that is very deep.
    find(key, fold) {
      let found = root;
      while (found && found.key !== key)
        found = below(found, columns[0], fold).find((one) => key === one.key || key.startsWith(`${one.key}/`));
      return found ?? null;
    },
    pathOf(found) {
      const path = [];
      for (let one = found; one; one = one.above) path.unshift(one);
      return path;
    },
  };
};
