/** The parts that settings are made of. */
import { useId, type ReactNode } from 'react';

export function Section({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <section className="section">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

type FieldProps = { label: string; hint?: string; children: (id: string) => ReactNode };

export function Field({ label, hint, children }: FieldProps): ReactNode {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint && <p className="hint">{hint}</p>}
    </div>
  );
}

type SelectProps = { label: string; value: string; options: Array<{ value: string; label: string }>; choose: (value: string) => void };

export function SelectField({ label, value, options, choose }: SelectProps): ReactNode {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => choose(event.target.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
