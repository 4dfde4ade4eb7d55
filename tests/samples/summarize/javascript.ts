// Copyright 1994 Ada Björk
/**
 * Moves boats by oars.
 */
import { pull, push } from "./oars";
import type Boat from '../boat';
const fs = require("fs");

export interface Floating { floats(): boolean; }
export type Strokes = number;
enum Kind { Rowing, Sailing }

export class Rower extends Person implements Floating {
  private name = "class NotThis {";
  async row(strokes: Strokes): Promise<void> {
    if (strokes > 0) { await pull(strokes); }
  }
  static floats(): boolean { return true; }
}

export default function start(boat: Boat) { return `function not() ${boat}`; }
export const stop = async (boat: Boat) => boat;
var helper = function () { /* function norThis() */ };
module.exports.helper = helper;
