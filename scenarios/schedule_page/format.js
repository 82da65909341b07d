// SPDX-License-Identifier: Apache-2.0
// Register and memory bits as numbers. Bits are BigInt of 64, low word first in every list.

const VIEWS = ['f32', 'f64', 'f16', 'hex'];
const VIEW_NAMES = { f32: 'FP32', f64: 'FP64', f16: 'FP16', hex: 'hex' };
const BYTES_OF_VIEW = { f32: 4, f64: 8, f16: 2, hex: 8 };

const scratch = new DataView(new ArrayBuffer(8));

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = bits >> 10 & 31;
  const fraction = bits & 0x3ff;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** A number in about six characters: 1.5, 0.747, 6.0e-41, -inf. */
function short(value, digits = 4) {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace('e+', 'e');
  return String(Number(value.toPrecision(digits)));
}

/** The elements of one 64-bit lane in a view, low first. */
function elements(bits, view) {
  scratch.setBigUint64(0, BigInt.asUintN(64, bits), true);
  switch (view) {
    case 'f64': return [short(scratch.getFloat64(0, true), 6)];
    case 'f32': return [0, 4].map((at) => short(scratch.getFloat32(at, true)));
    case 'f16': return [0, 2, 4, 6].map((at) => short(halfToNumber(scratch.getUint16(at, true))));
    default: return [bits.toString(16).padStart(16, '0')];
  }
}

/** A scalar as addresses and counters are read: "0x1000 = 4096", small numbers plainly. */
function integer(bits) {
  const signed = BigInt.asIntN(64, bits);
  if (signed > -10n && signed < 10n) return String(signed);
  const magnitude = signed < 0n ? -signed : signed;
  return magnitude < 0x100000000n ? `0x${bits.toString(16)} = ${signed}` : `0x${bits.toString(16)}`;
}

/** A value of the data: "3f", "=3f" (a vector with it in each lane) or 16 lanes of 16 digits, as a list of lanes. */
function lanesOf(text) {
  if (text[0] === '=') return Array(16).fill(BigInt('0x' + text.slice(1)));
  if (text.length <= 16) return [BigInt('0x' + text)];
  return Array.from({ length: 16 }, (_, lane) => BigInt('0x' + text.slice(16 * lane, 16 * lane + 16)));
}

/** One line for a list: the first elements, and whether all are the same. */
function summary(text, register, view) {
  const lanes = lanesOf(text);
  if (!register.startsWith('VR')) {
    return register.startsWith('R') && view !== 'hex' ? `${integer(lanes[0])}  (${elements(lanes[0], view).join(' ')})` : integer(lanes[0]);
  }
  const all = lanes.flatMap((lane) => elements(lane, view));
  if (all.every((element) => element === all[0])) return `${all[0]} in all ${all.length}`;
  return all.slice(0, 6).join(' ') + ` … ${all.length} in all`;
}
