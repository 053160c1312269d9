#!/usr/bin/env node
import "../../../tools/spry.mjs";
