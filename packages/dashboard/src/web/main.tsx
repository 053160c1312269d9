import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { render } from "preact";
import { App, start } from "./app.tsx";
import { applyTheme } from "./ui/theme.ts";

applyTheme();
void start();
const root = document.getElementById("app");
if (root) render(<App />, root);
