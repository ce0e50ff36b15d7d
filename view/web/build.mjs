// Bundles the page into the package: node build.mjs
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

const assets = "../src/mldiagnostics_view/assets";
rmSync(assets, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });
const { metafile } = await build({
  entryPoints: ["src/main.ts", "src/style.css"],
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: ["es2022"],
  entryNames: "[name]-[hash]",
  outdir: assets,
});
let page = readFileSync("src/index.html", "utf8");
for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
  page = page.replace(basename(entryPoint), `/assets/${basename(file)}`);
}
writeFileSync(`${assets}/index.html`, page);
