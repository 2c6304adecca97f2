// Answers the pairs on standard input with the verdicts of npm @aws-cdk/cloudformation-diff: one JSON list for
// each line. "unknown" stands where it does not know the property that differs, and so has no opinion.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const { fullDiff, ResourceImpact } = createRequire(`${process.argv[2]}/`)('@aws-cdk/cloudformation-diff');

const words = {
  [ResourceImpact.NO_CHANGE]: 'none',
  [ResourceImpact.WILL_UPDATE]: 'update',
  [ResourceImpact.MAY_REPLACE]: 'maybe',
  [ResourceImpact.WILL_REPLACE]: 'replace',
};

const template = (Type, Properties) => ({ Resources: { R: { Type, Properties } } });

function verdict(type, before, pair) {
  const after = { ...before };
  if (pair.gone) delete after[pair.property];
  else after[pair.property] = pair.new;
  const change = fullDiff(template(type, before), template(type, after)).resources.changes.R;
  if (!change || !change.isDifferent) return 'none';
  const word = words[change.changeImpact];
  if (word === undefined) throw new Error(`${type} ${pair.path}: impact ${change.changeImpact}`);
  return word === 'none' ? 'unknown' : word;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { type, properties, pairs } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(pairs.map((p) => verdict(type, properties, p)))}\n`);
}
