//! Column masks: a function of the column's value with its other arguments fixed, attached to the
//! column.

use std::sync::Arc;

use schema::{ColumnMask, Schema};
use types::CqlType;

use crate::ast::{self, QualifiedName};
use crate::context::{Bind, Limits};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assign::call::TermArgument;
use crate::term::assignment::Assignment;
use crate::term::function::{self, Argument, Function};
use crate::term::{Term, text};
use crate::value::{Bound, Value, Values};

/// What a node answers whose operator has not enabled dynamic data masking.
pub(super) const DISABLED: &str = "Cannot mask columns because dynamic data masking is not enabled. You \
    can enable it with the dynamic_data_masking_enabled property on cassandra.yaml";

/// The masked column itself as an argument.
struct Masked<'a>(&'a CqlType);

impl Argument for Masked<'_> {
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError> {
        Ok(Assignment::of_types(&receiver.ty, self.0))
    }

    fn text(&self) -> String {
        self.0.to_marshal_string()
    }

    fn known_type(&self) -> Option<CqlType> {
        Some(self.0.clone())
    }
}

/// What the markers of a mask are bound to: it has none.
struct NoValues;

impl Values for NoValues {
    fn len(&self) -> usize {
        0
    }

    fn get(&self, _: usize) -> Value<'_> {
        Value::Unset
    }
}

/// Can a function mask a column of a type?
fn check(
    function: &Function,
    column: &str,
    ty: &CqlType,
    shown: &dyn Fn() -> String,
) -> Result<(), CqlError> {
    if function.aggregate().is_some() {
        return Err(CqlError::invalid(format!(
            "Aggregate function {} cannot be used for masking table columns",
            shown()
        )));
    }
    if !function.is_mask() {
        return Err(CqlError::invalid(format!(
            "Not-masking function {} cannot be used for masking table columns",
            shown()
        )));
    }
    if function.returns() != ty {
        return Err(CqlError::invalid(format!(
            "Masking function {} return type is {}. This is different to the type of the masked column {column} of \
             type {ty}. Masking functions can only be attached to table columns if they return the same data type as \
             the masked column.",
            shown(),
            function.returns()
        )));
    }
    Ok(())
}

/// The mask of a column of a type, its function found and its arguments evaluated.
pub(super) fn resolve(
    mask: &ast::ColumnMask,
    keyspace: &str,
    column: &str,
    ty: &CqlType,
    schema: &Schema,
) -> Result<Arc<ColumnMask>, CqlError> {
    let default = QualifiedName { keyspace: Some("system".into()), name: "mask_default".into() };
    let (name, raws) = match mask {
        ast::ColumnMask::Default => (&default, &[][..]),
        ast::ColumnMask::Function(name, raws) => (name, raws.as_slice()),
    };
    let shown = || {
        let keyspace =
            name.keyspace.as_ref().map_or(String::new(), |keyspace| format!("{keyspace}."));
        let arguments: Vec<_> = raws.iter().map(text::text).collect();
        format!("{keyspace}{}({})", name.name, arguments.join(", "))
    };
    let mut scope = Scope::new(schema, Some(keyspace));
    let found = {
        let masked = Masked(ty);
        let terms: Vec<_> =
            raws.iter().map(|raw| TermArgument::new(raw, keyspace, &scope)).collect();
        let mut arguments: Vec<&dyn Argument> = vec![&masked];
        arguments.extend(terms.iter().map(|term| term as &dyn Argument));
        function::resolve(name, &arguments, Some(ty), None, schema.release())?
    };
    let function = found.ok_or_else(|| {
        CqlError::invalid(format!(
            "Unable to find masking function for {column}, no declared function matches the signature {}",
            shown()
        ))
    })?;
    check(&function, column, ty, &shown)?;
    let mut mask = ColumnMask {
        function_keyspace: "system".into(),
        function_name: function.name().into(),
        argument_types: Vec::new(),
        arguments: Vec::new(),
    };
    let limits = Limits::default();
    let bind = Bind {
        values: &NoValues,
        timestamp: 0,
        now_seconds: 0,
        now_millis: 0,
        protocol_version: 5,
        time_uuid: &|| [0; 16],
        list_path: &|| [0; 16],
        random: &|| [0; 16],
        limits: &limits,
        guard: None,
        once: Default::default(),
    };
    for (raw, ty) in raws.iter().zip(function.arguments().iter().skip(1)) {
        let receiver = ColumnSpec::new(keyspace, "--dummy--", "(dummy)", ty.clone());
        let term = Term::prepare(raw, keyspace, &receiver, &mut scope)?;
        if !term.is_fixed() {
            return Err(CqlError::invalid(format!(
                "Argument {} of masking function {} has no fixed value",
                text::text(raw),
                shown()
            )));
        }
        mask.argument_types.push(ty.cql_name());
        mask.arguments.push(match term.bind(&bind)? {
            Bound::Bytes(value) => Some(ty.to_text(&value)),
            Bound::Null | Bound::Unset => None,
        });
    }
    Ok(Arc::new(mask))
}
