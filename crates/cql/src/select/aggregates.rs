//! The aggregates of a selection: what an aggregation takes of each row.

use types::CqlType;

use crate::error::CqlError;
use crate::select::aggregation::Aggregation;
use crate::select::cell::put;
use crate::select::expr::{Env, Expr};
use crate::term::function::aggregate::{Aggregate, State};

/// An aggregate of the selection.
#[derive(Clone, Debug)]
pub(super) struct Aggregated {
    pub work: Aggregate,
    /// The type of the argument.
    pub ty: CqlType,
    /// The argument; none where rows are counted.
    pub argument: Option<Expr>,
}

/// What is computed of rows, and what of groups: see [`Aggregation`].
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregates {
    pub all: Vec<Aggregated>,
    /// How many parts of the outputs are kept of the first row.
    pub firsts: usize,
}

impl Aggregates {
    pub(super) fn begin(&self) -> Aggregation {
        Aggregation::new(self.all.iter().map(|one| State::new(one.work, &one.ty)).collect())
    }

    /// Is the result the same whoever takes which rows in?
    pub(super) fn merge(&self) -> bool {
        let has_decimal = |ty: &CqlType| ty.any(&mut |ty| *ty == CqlType::Decimal);
        // of values that compare equal the first one counts, and only those of decimals may differ
        let merges = |one: &Aggregated| {
            let is_extreme = matches!(one.work, Aggregate::Min | Aggregate::Max);
            State::new(one.work, &one.ty).merges() && !(is_extreme && has_decimal(&one.ty))
        };
        self.firsts == 0 && self.all.iter().all(merges)
    }

    /// Appends what an aggregation takes of a row as cells: the arguments of the aggregates, and
    /// the parts that are kept of the first.
    pub(super) fn inputs(
        &self,
        outputs: &[Expr],
        env: &Env<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        for one in &self.all {
            match &one.argument {
                Some(argument) => put(out, env.value(argument)?.as_deref()),
                None => put(out, Some(&[])),
            }
        }
        let mut result = Ok(());
        for output in outputs {
            output.for_each_first(&mut |inner| {
                if result.is_ok() {
                    result = env.value(inner).map(|value| put(out, value.as_deref()));
                }
            });
        }
        result
    }

    /// Takes a row into an aggregation.
    pub(super) fn add(
        &self,
        aggregation: &mut Aggregation,
        outputs: &[Expr],
        env: &Env<'_>,
    ) -> Result<(), CqlError> {
        for (index, one) in self.all.iter().enumerate() {
            match &one.argument {
                Some(argument) => aggregation.add(index, env.value(argument)?.as_deref())?,
                None => aggregation.add(index, Some(&[]))?,
            }
        }
        if aggregation.has_no_firsts() && self.firsts > 0 {
            let mut firsts = Vec::with_capacity(self.firsts);
            let mut result = Ok(());
            for output in outputs {
                output.for_each_first(&mut |inner| {
                    if result.is_ok() {
                        result = env
                            .value(inner)
                            .map(|value| firsts.push(value.as_deref().map(Into::into)));
                    }
                });
            }
            result?;
            aggregation.keep_firsts(firsts);
        }
        Ok(())
    }
}
