"use strict";
// The page's script: sorts and filters its tables, draws curves, and looks into questions, responses and pairs of
// cells. Data and libraries lie packed in the page. What a model wrote becomes text nodes only, never HTML.

const state = { data: null, responses: null, tables: new Map() };

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function fill(select, options, wanted = select.value) {
  select.replaceChildren(...options.map(([value, label]) => make("option", { value, textContent: label })));
  if (options.some(([value]) => value === wanted)) select.value = wanted;
  select.parentElement.hidden = options.length < 2;
}

function onChange(ids, action) {
  for (const id of ids) byId(id).addEventListener("change", action);
}

const unique = (values) => [...new Set(values)];
const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const signed = (value, digits = 2) => (value > 0 ? "+" : "") + fixed(value, digits);
const range = ({ low, high }) => `${signed(100 * low)} to ${signed(100 * high)}`;
const showT = ({ t, df }) => `t(${fixed(df, 1)}) = ${fixed(t)}`;
const showP = (p) => (p < 0.001 ? "< 0.001" : fixed(p, 3));
// Plotly reads some tags in its labels; names from the configuration are to be read as they are.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

async function startLibrary(block) {
  document.head.append(make("script", { textContent: await unpack(block.textContent) }));
  block.remove();
}
