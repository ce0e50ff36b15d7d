// Bundles the page into the package: node build.mjs
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

const assets = "../src/mldiagnostics_view/assets";
rmSync(assets, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });
const shared = { bundle: true, minify: true, metafile: true, entryNames: "[name]-[hash]", outdir: assets };
const builds = [
  await build({ ...shared, entryPoints: ["src/main.ts", "src/style.css"], format: "esm", target: ["es2022"] }),
  await build({ ...shared, entryPoints: ["failures.js"], format: "iife", target: ["es5"] }),
];
let page = readFileSync("src/index.html", "utf8");
for (const { metafile } of builds) {
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    page = page.replace(basename(entryPoint), `/assets/${basename(file)}`);
  }
}
writeFileSync(`${assets}/index.html`, page);
