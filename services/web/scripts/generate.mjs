// Types the page's requests from schemas/read_model.graphql.
//
// Reads src/api/operations.graphql, validates it against the schema, and writes src/api/generated.ts: the enums, the
// inputs, one type for each fragment and operation, and the text that goes over the wire. With --check it writes
// nothing and fails when the committed file is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  buildSchema, getNamedType, isAbstractType, isEnumType, isInputObjectType, isListType, isNonNullType, isObjectType,
  parse, print, typeFromAST, validate, visit,
} from 'graphql';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const OUTPUT = path('../src/api/generated.ts');
const SCALARS = { ID: 'string', String: 'string', Int: 'number', Float: 'number', Boolean: 'boolean', DateTime: 'string', Position: 'string', JSON: 'unknown' };

const schema = buildSchema(readFileSync(path('../../../schemas/read_model.graphql'), 'utf8'));
const operations = parse(readFileSync(path('../src/api/operations.graphql'), 'utf8'), { noLocation: true });
const mistakes = validate(schema, operations);
if (mistakes.length > 0) {
  console.error(mistakes.map((mistake) => mistake.message).join('\n'));
  process.exit(1);
}

const fragments = new Map(
  operations.definitions.filter((node) => node.kind === 'FragmentDefinition').map((node) => [node.name.value, node]),
);
const usedNames = new Set();

function leaf(type) {
  const known = SCALARS[type.name];
  if (known) return known;
  if (isEnumType(type) || isInputObjectType(type)) {
    usedNames.add(type.name);
    return type.name;
  }
  throw new Error(`no TypeScript type for the scalar ${type.name}`);
}

/** Wraps what `inner` gives for the named type in the lists and nulls of `type`. */
function wrapped(type, inner) {
  if (isNonNullType(type)) return notNull(type.ofType, inner);
  return `${notNull(type, inner)} | null`;
}

function notNull(type, inner) {
  if (isListType(type)) {
    const item = wrapped(type.ofType, inner);
    return /[ |{]/.test(item) ? `Array<${item}>` : `${item}[]`;
  }
  return inner(type);
}

/** The TypeScript type of a selection on a type: an object, joined with the fragments that it spreads. */
function selected(type, selectionSet) {
  if (isAbstractType(type)) return union(type, selectionSet);
  const own = [];
  const spreads = [];
  for (const selection of selectionSet.selections) {
    if (selection.kind === 'FragmentSpread') {
      spreads.push(selection.name.value);
    } else if (selection.kind === 'Field') {
      own.push(field(type, selection));
    } else {
      throw new Error('inline fragments are for unions only');
    }
  }
  const parts = own.length > 0 ? [`{ ${own.join('; ')} }`, ...spreads] : spreads;
  return parts.join(' & ');
}

function field(type, selection) {
  const name = (selection.alias ?? selection.name).value;
  if (selection.name.value === '__typename') return `${name}: '${type.name}'`;
  const definition = type.getFields()[selection.name.value];
  const inner = (named) => (selection.selectionSet ? selected(named, selection.selectionSet) : leaf(named));
  return `${name}: ${wrapped(definition.type, inner)}`;
}

/** One object for each member that is selected, told apart by `__typename`; all others only carry their name. */
function union(type, selectionSet) {
  const bodies = new Map();
  for (const selection of selectionSet.selections) {
    if (selection.kind === 'InlineFragment') bodies.set(selection.typeCondition.name.value, selection.selectionSet);
  }
  const members = schema.getPossibleTypes(type).map((member) => {
    const body = bodies.get(member.name);
    const fields = body ? body.selections.map((selection) => field(member, selection)) : [];
    return `{ ${[`__typename: '${member.name}'`, ...fields].join('; ')} }`;
  });
  return members.join('\n  | ');
}

function variables(operation) {
  const lines = (operation.variableDefinitions ?? []).map((definition) => {
    const type = typeFromAST(schema, definition.type);
    const optional = isNonNullType(type) ? '' : '?';
    return `${definition.variable.name.value}${optional}: ${wrapped(type, leaf)}`;
  });
  return lines.length > 0 ? `{ ${lines.join('; ')} }` : 'Record<string, never>';
}

/** The operation's text with every fragment that it needs. */
function wireText(operation) {
  const needed = new Set();
  const collect = (node) => visit(node, {
    FragmentSpread(spread) {
      if (needed.has(spread.name.value)) return;
      needed.add(spread.name.value);
      collect(fragments.get(spread.name.value));
    },
  });
  collect(operation);
  return [operation, ...[...needed].map((name) => fragments.get(name))].map((node) => print(node)).join('\n').replace(/\s+/g, ' ');
}

function definedName(name) {
  const type = schema.getType(name);
  if (isEnumType(type)) {
    return `export type ${name} =\n${type.getValues().map((value) => `  | '${value.name}'`).join('\n')};`;
  }
  const lines = Object.values(type.getFields()).map((input) => {
    const optional = isNonNullType(input.type) ? '' : '?';
    return `  ${input.name}${optional}: ${wrapped(input.type, leaf)};`;
  });
  return `export type ${name} = {\n${lines.join('\n')}\n};`;
}

const bodies = [];
for (const [name, fragment] of fragments) {
  const type = getNamedType(schema.getType(fragment.typeCondition.name.value));
  if (!isObjectType(type)) throw new Error(`${name} must be on an object type`);
  bodies.push(`export type ${name} = ${selected(type, fragment.selectionSet)};`);
}
for (const operation of operations.definitions.filter((node) => node.kind === 'OperationDefinition')) {
  const name = operation.name.value;
  bodies.push(`export type ${name}Data = ${selected(schema.getRootType(operation.operation), operation.selectionSet)};`);
  bodies.push(`export type ${name}Variables = ${variables(operation)};`);
  bodies.push(`export const ${name}: Operation<${name}Data, ${name}Variables> = {\n  name: '${name}',\n  text: ${JSON.stringify(wireText(operation))},\n};`);
}

const names = [];
for (const seen = new Set(); seen.size < usedNames.size; ) {
  const next = [...usedNames].find((name) => !seen.has(name));
  seen.add(next);
  names.push(definedName(next));
}

const text = [
  '// Generated by `npm run generate` from schemas/read_model.graphql and operations.graphql. Do not edit.',
  '/** One request: its wire text, and the types of its answer and its variables. */\nexport type Operation<Data, Variables> = { name: string; text: string; readonly types?: [Data, Variables] };',
  ...names.sort(),
  ...bodies,
].join('\n\n') + '\n';

const stale = !existsSync(OUTPUT) || readFileSync(OUTPUT, 'utf8') !== text;
if (!process.argv.includes('--check')) {
  // A file that stays the same keeps its time, too.
  if (stale) writeFileSync(OUTPUT, text);
} else if (stale) {
  console.error('src/api/generated.ts is stale: run `npm run generate` and commit it');
  process.exit(1);
}
