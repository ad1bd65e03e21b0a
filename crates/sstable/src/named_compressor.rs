//! A compressor as settings and the headers of logs and hints name it (`ParameterizedClass`).

use std::collections::BTreeMap;

use types::CqlType;

use crate::compressor::{Codec, Compressor};
use crate::error::Error;

/// A compressor by its class and parameters, which are kept as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCompressor {
    class: String,
    parameters: BTreeMap<String, String>,
    compressor: Compressor,
}

impl NamedCompressor {
    /// By the name of a class, with or without package, and its parameters.
    ///
    /// # Errors
    /// If the class or a parameter is unknown, in Cassandra's words.
    pub fn new(class: &str, parameters: BTreeMap<String, String>) -> Result<Self, Error> {
        let compressor = Compressor::parse(class, &parameters)?;
        Ok(Self { class: class.to_owned(), parameters, compressor })
    }

    /// The class, as it was named.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Has it any?
    pub fn has_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// The class as a string of JSON.
    pub fn class_json(&self) -> String {
        json_text(&self.class)
    }

    /// The parameters as an object of JSON.
    pub fn parameters_json(&self) -> String {
        let members = self.parameters.iter();
        let members: Vec<_> = members
            .map(|(name, value)| format!("{}:{}", json_text(name), json_text(value)))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// Something that compresses so.
    pub fn codec(&self) -> Codec {
        Codec::new(self.compressor)
    }
}

fn json_text(text: &str) -> String {
    CqlType::Text.to_json(text.as_bytes()).expect("a UTF-8 text can be written as JSON")
}
