import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { render } from "preact";
import { App, start } from "./app.tsx";
import { applyTheme } from "./ui/theme.ts";

applyTheme();
const root = document.getElementById("app");
// What stands there until the scripts are here.
root?.replaceChildren();
void start();
if (root) render(<App />, root);
