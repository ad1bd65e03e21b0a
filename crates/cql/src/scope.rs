//! What a statement is prepared in: the schema, the session's keyspace, and the bind markers met so
//! far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{Column, ColumnKind, Schema, Table};
use types::CqlType;

use crate::ast::{QualifiedName, Term};
use crate::error::CqlError;
use crate::metadata::Variable;
use crate::term::assignment::Assignment;

/// What receives a term: a column, a part of one, or something such as `[limit]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The name, as error messages and metadata give it.
    pub name: Arc<str>,
    /// The type of the value.
    pub ty: CqlType,
    /// The place in the partition key, where this is a column of it and not a part of one.
    pub partition_key: Option<u16>,
}

impl ColumnSpec {
    /// A column as a whole.
    pub fn of_column(table: &Table, column: &Column) -> Self {
        let partition_key = (column.kind == ColumnKind::PartitionKey).then_some(column.index);
        Self {
            keyspace: table.keyspace.as_str().into(),
            table: table.name.as_str().into(),
            name: Arc::clone(&column.name),
            ty: column.ty.clone(),
            partition_key,
        }
    }

    /// Something else that takes a value.
    pub fn new(keyspace: &str, table: &str, name: impl AsRef<str>, ty: CqlType) -> Self {
        Self {
            keyspace: keyspace.into(),
            table: table.into(),
            name: name.as_ref().into(),
            ty,
            partition_key: None,
        }
    }

    /// Another name and type at the same table: a part of this one, say.
    pub fn derive(&self, name: impl AsRef<str>, ty: CqlType) -> Self {
        Self {
            keyspace: Arc::clone(&self.keyspace),
            table: Arc::clone(&self.table),
            name: name.as_ref().into(),
            ty,
            partition_key: None,
        }
    }
}

/// The bind markers of a statement, and what each stands for.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    names: Vec<Option<String>>,
    specs: Vec<Option<ColumnSpec>>,
}

impl Variables {
    /// The markers of a statement, by their own names.
    pub fn new(names: Vec<Option<String>>) -> Self {
        let specs = vec![None; names.len()];
        Self { names, specs }
    }

    /// Says what a marker stands for; the last word counts.
    pub fn set(&mut self, marker: u32, spec: &ColumnSpec) {
        if let Some(slot) = usize::try_from(marker).ok().and_then(|at| self.specs.get_mut(at)) {
            *slot = Some(spec.clone());
        }
    }

    /// Number of markers.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The variables, under the markers' own names where they have some.
    pub fn variables(&self) -> Vec<Variable> {
        let named = self.specs.iter().zip(&self.names);
        named
            .map(|(spec, name)| {
                let spec =
                    spec.clone().unwrap_or_else(|| ColumnSpec::new("", "", "", CqlType::Blob));
                Variable {
                    keyspace: spec.keyspace,
                    table: spec.table,
                    name: name.as_deref().map_or(spec.name, Arc::from),
                    ty: spec.ty,
                }
            })
            .collect()
    }

    /// Of each of the `count` columns of the partition key, the last marker that stands for it;
    /// nothing unless all have one.
    pub fn partition_key_markers(&self, count: usize) -> Vec<u16> {
        let mut markers = vec![None; count];
        for (marker, spec) in self.specs.iter().enumerate() {
            let position = spec.as_ref().and_then(|spec| spec.partition_key);
            if let Some(slot) = position.and_then(|at| markers.get_mut(usize::from(at))) {
                *slot = u16::try_from(marker).ok();
            }
        }
        markers.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
    }
}

/// What was found out about calls in terms, by where they stand in the tree of the statement: each
/// is asked about once for every type that may receive it.
#[derive(Debug, Default)]
pub struct Verdicts {
    assignments: RefCell<BTreeMap<(usize, CqlType), Assignment>>,
    types: RefCell<BTreeMap<usize, Option<CqlType>>>,
}

impl Verdicts {
    fn place(term: &Term) -> usize {
        std::ptr::from_ref(term).addr()
    }

    /// How well the result of a call fits a type.
    pub fn assignment(
        &self,
        call: &Term,
        ty: &CqlType,
        find: impl FnOnce() -> Assignment,
    ) -> Assignment {
        let key = (Self::place(call), ty.clone());
        let known = self.assignments.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let found = find();
            self.assignments.borrow_mut().insert(key, found);
            found
        })
    }

    /// The type of the result of a call.
    pub fn known_type(
        &self,
        call: &Term,
        find: impl FnOnce() -> Option<CqlType>,
    ) -> Option<CqlType> {
        let known = self.types.borrow().get(&Self::place(call)).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            self.types.borrow_mut().insert(Self::place(call), found.clone());
            found
        })
    }
}

/// Where a statement is prepared.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The keyspace of the session (or of the request, in v5).
    pub keyspace: Option<&'a str>,
    /// The markers.
    pub variables: Variables,
    /// Markers of the partition key, as [`Prepared`](crate::Prepared) gives them. SELECT and the
    /// modifications set it.
    pub partition_key_markers: Vec<u16>,
    /// The keyspace that the statement acts on.
    pub acts_on: Option<String>,
    /// Warnings for every answer.
    pub warnings: Vec<String>,
    /// What is known about calls already. The tree of the statement must outlive it.
    pub verdicts: Verdicts,
}

impl<'a> Scope<'a> {
    /// A scope without markers.
    pub fn new(schema: &'a Schema, keyspace: Option<&'a str>) -> Self {
        Self {
            schema,
            keyspace,
            variables: Variables::default(),
            partition_key_markers: Vec::new(),
            acts_on: None,
            warnings: Vec::new(),
            verdicts: Verdicts::default(),
        }
    }

    /// The keyspace of a name: its own or the session's (`ClientState.getKeyspace`).
    pub fn keyspace_of<'n>(&self, name: &'n QualifiedName) -> Result<&'n str, CqlError>
    where
        'a: 'n,
    {
        name.keyspace.as_deref().or(self.keyspace).ok_or_else(|| {
            CqlError::invalid(
                "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
            )
        })
    }

    /// The table or view of a name (`Schema.validateTable`). Notes the keyspace as the one acted
    /// on.
    pub fn table(&mut self, name: &QualifiedName) -> Result<Arc<Table>, CqlError> {
        let keyspace = self.keyspace_of(name)?;
        if self.schema.keyspace(keyspace).is_none() {
            return Err(CqlError::invalid(format!("keyspace {keyspace} does not exist")));
        }
        let table = self.schema.table(keyspace, &name.name);
        let table = table
            .ok_or_else(|| CqlError::invalid(format!("table {} does not exist", name.name)))?;
        self.acts_on = Some(keyspace.to_owned());
        Ok(Arc::clone(table))
    }

    /// The column of a name (`TableMetadata.getExistingColumn`).
    pub fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, CqlError> {
        table.column(name).filter(|column| !table.is_hidden(column)).ok_or_else(|| {
            let name = types::maybe_quote(name);
            let table = format!(
                "{}.{}",
                types::maybe_quote(&table.keyspace),
                types::maybe_quote(&table.name)
            );
            CqlError::invalid(format!("Undefined column name {name} in table {table}"))
        })
    }
}
