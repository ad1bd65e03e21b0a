//! INSERT JSON: a document as values of markers, one a column of the table.

use schema::Table;
use types::{CqlType, Json};

use crate::ast::{JsonDefault, JsonValue};
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::value::{OwnedValue, OwnedValues, Value};

/// Where the document comes from, and what becomes of columns that are not in it. Column `n` of the
/// table (in the order of INSERT JSON) is marker `n` of the operations.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    default: JsonDefault,
}

#[derive(Clone, Debug)]
enum Source {
    Text(String),
    Marker(usize),
}

impl Document {
    /// Checks a document that is there, and notes the marker of one that is not.
    pub fn prepare(
        value: &JsonValue,
        default: JsonDefault,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let source = match value {
            JsonValue::Text(text) => Source::Text(text.clone()),
            JsonValue::Marker(marker) => {
                let spec = ColumnSpec::new(&table.keyspace, &table.name, "[json]", CqlType::Text);
                scope.variables.set(*marker, &spec);
                Source::Marker(*marker as usize)
            }
        };
        let this = Self { source, default };
        if let Source::Text(text) = &this.source {
            // what the timestamp `now` means is known when the statement is run
            this.columns(text, table, 0)?;
        }
        Ok(this)
    }

    /// The values of a request.
    pub fn values(&self, table: &Table, bind: &Bind<'_>) -> Result<OwnedValues, CqlError> {
        match &self.source {
            Source::Text(text) => self.columns(text, table, bind.now_millis),
            Source::Marker(marker) => {
                let bytes = match bind.values.get(*marker) {
                    Value::Bytes(bytes) => bytes,
                    Value::Null => {
                        return Err(CqlError::invalid("Got null for INSERT JSON values"));
                    }
                    Value::Unset => {
                        return Err(CqlError::invalid("Invalid unset value for INSERT JSON"));
                    }
                };
                CqlType::Text
                    .validate(bytes)
                    .map_err(|error| CqlError::invalid(error.to_string()))?;
                self.columns(&String::from_utf8_lossy(bytes), table, bind.now_millis)
            }
        }
    }

    fn columns(&self, text: &str, table: &Table, now_millis: i64) -> Result<OwnedValues, CqlError> {
        let refused = |why: &dyn std::fmt::Display| {
            CqlError::invalid(format!(
                "Could not decode JSON string as a map: {why}. (String was: {text})"
            ))
        };
        let members = match Json::parse(text).map_err(|error| refused(&error))? {
            Json::Object(members) => members,
            Json::Null => return Err(CqlError::invalid("Got null for INSERT JSON values")),
            _ => {
                return Err(refused(&"Cannot deserialize value of type `java.util.LinkedHashMap`"));
            }
        };
        let members = Json::fold_names(&members);
        let known = members.iter().map(|(name, value)| (name.as_str(), *value));
        let mut known: std::collections::BTreeMap<&str, &Json> = known.collect();
        let mut columns = Vec::new();
        for column in table.all_columns_in_json_order() {
            columns.push(match (known.remove(&*column.name), self.default) {
                (Some(Json::Null), _) | (None, JsonDefault::Null) => OwnedValue::Null,
                (None, JsonDefault::Unset) => OwnedValue::Unset,
                (Some(json), _) => {
                    let value = column.ty.parse_json(json, now_millis).map_err(|why| {
                        CqlError::invalid(format!(
                            "Error decoding JSON value for {}: {why}",
                            column.name
                        ))
                    })?;
                    if column.kind.is_primary_key() {
                        // elsewhere what JSON gives is written as it is, the empty value of any
                        // type too
                        column
                            .ty
                            .validate(&value)
                            .map_err(|error| CqlError::invalid(error.to_string()))?;
                    }
                    OwnedValue::Bytes(value)
                }
            });
        }
        // the first of those left, in the order of the document
        let unknown = members.iter().find(|(name, _)| known.contains_key(name.as_str()));
        match unknown {
            Some((name, _)) => Err(CqlError::invalid(format!(
                "JSON values map contains unrecognized column: {name}"
            ))),
            None => Ok(OwnedValues::made(columns)),
        }
    }
}
