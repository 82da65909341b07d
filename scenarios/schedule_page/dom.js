// SPDX-License-Identifier: Apache-2.0
// Small helpers for elements. Text goes in as text, never as HTML.

/** make('p.soft', {title: 'x'}, 'text', child): an element with classes, attributes and children. */
function make(what, attributes, ...children) {
  const [tag, ...classes] = what.split('.');
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(' ');
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') element.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);
const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** Says a sentence to screen readers. */
function announce(text) { byId('announcer').textContent = text; }

/** The colour of a chain: seven hues, used again from the eighth on; the letter tells them apart. */
const hueOf = (chain) => `var(--hue-${chain === 0 ? 0 : (chain - 1) % 7 + 1})`;
const letterOf = (chain) => (chain === 0 ? '' : chain <= 26 ? String.fromCharCode(96 + chain) : String(chain));
