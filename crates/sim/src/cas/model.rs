//! What a partition holds and what conditional statements make of it.

/// The value of a row: numbers, one for a register, several for a list. A row without a value is
/// not there.
pub type Value = Option<Vec<u64>>;

/// The rows of a partition.
pub type State = Vec<Value>;

/// What must hold of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `IF v = ..`.
    Is(Value),
    /// `IF EXISTS`.
    Exists,
    /// `IF NOT EXISTS`.
    Missing,
}

impl Condition {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Is(wanted) => value == wanted,
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
        }
    }
}

/// What happens to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It gets a value, or goes.
    Set(Value),
    /// Its list gets longer.
    Append(u64),
    /// The same at its front.
    Prepend(u64),
}

/// One statement: which row, on which condition, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The row.
    pub row: usize,
    /// What must hold.
    pub condition: Condition,
    /// What happens.
    pub effect: Effect,
}

/// What a client asks of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// All parts, if all conditions hold.
    Change(Vec<Part>),
    /// Everything.
    Read,
}

/// What it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The change was made.
    Applied,
    /// It was not, and these were the rows that it asked for, in the order of its parts.
    Refused(Vec<Value>),
    /// What a read gave.
    Saw(State),
}

/// The state after an operation; `None` if it cannot have this outcome. Where nobody knows the
/// outcome, it is that which follows.
pub fn step(state: &State, operation: &Operation, outcome: Option<&Outcome>) -> Option<State> {
    let parts = match (operation, outcome) {
        (Operation::Read, Some(Outcome::Saw(seen))) => {
            return (seen == state).then(|| state.clone());
        }
        (Operation::Read, _) | (_, Some(Outcome::Saw(_))) => return None,
        (Operation::Change(parts), _) => parts,
    };
    let row = |at: usize| state.get(at).cloned().unwrap_or_default();
    let holds = parts.iter().all(|part| part.condition.holds(&row(part.row)));
    match outcome {
        Some(Outcome::Refused(seen)) => {
            let were = parts.iter().map(|part| row(part.row));
            return (!holds && seen.iter().cloned().eq(were)).then(|| state.clone());
        }
        Some(_) if !holds => return None,
        None if !holds => return Some(state.clone()),
        _ => {}
    }
    let mut after = state.clone();
    for part in parts {
        let Some(row) = after.get_mut(part.row) else { continue };
        match &part.effect {
            Effect::Set(value) => *row = value.clone(),
            Effect::Append(number) => row.get_or_insert_default().push(*number),
            Effect::Prepend(number) => row.get_or_insert_default().insert(0, *number),
        }
    }
    Some(after)
}
