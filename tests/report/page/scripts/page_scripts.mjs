// Runs scripts of the page as a browser does, one behind the other in one place of names, with what they need of a document.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const ASSETS = new URL("../../../../pypoplar/report/page/assets/", import.meta.url);

class ImageData {
  constructor(width, height) {
    Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
  }
}

// The values of some names of the scripts, `page` among them, for a page with this data.
export function scripts(names, { data = {}, wanted = [] } = {}) {
  const document = { getElementById: () => ({ textContent: JSON.stringify(data) }) };
  const text = ["core", ...names].map((name) => readFileSync(new URL(`${name}.js`, ASSETS), "utf8")).join("\n");
  return vm.runInNewContext(`${text}\n;({ ${["page", ...wanted].join(", ")} })`, { document, ImageData });
}

// Arrays of another place of names are none of ours to `assert`.
export const plain = (value) => JSON.parse(JSON.stringify(value, (_, one) => (ArrayBuffer.isView(one) ? Array.from(one) : one)));

// Random numbers, the same ones every time.
export function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
