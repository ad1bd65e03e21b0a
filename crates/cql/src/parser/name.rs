//! Names: of columns, fields, keyspaces, tables, functions, roles; and strings.

use super::{K, Parser, Res};
use crate::ast::QualifiedName;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Whether the token that far ahead can name a column, field, table, ... (`""` apart).
    pub(super) fn is_name_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Kind::Ident | Kind::QuotedName => true,
            Kind::Keyword(word) => !word.is_reserved(),
            _ => false,
        }
    }

    /// Whether the token that far ahead can name a column where `""` may.
    pub(super) fn is_column_at(&self, ahead: usize) -> bool {
        self.is_name_at(ahead) || self.kind_at(ahead) == Kind::EmptyQuotedName
    }

    /// A name: unquoted it folds to lower case.
    pub(super) fn name(&mut self) -> Res<String> {
        if !self.is_name_at(0) {
            return self.no_viable();
        }
        Ok(self.take_name())
    }

    /// The name that is known to stand here.
    fn take_name(&mut self) -> String {
        let source = self.source();
        let name = match self.kind() {
            Kind::QuotedName => unquote(source, '"'),
            _ => source.to_ascii_lowercase(),
        };
        self.skip();
        name
    }

    /// A column's name in a place that takes `""` as well.
    pub(super) fn column(&mut self) -> Res<String> {
        if self.eat(Kind::EmptyQuotedName) {
            return Ok(String::new());
        }
        self.name()
    }

    fn unbindable_name(&mut self, what: &str) -> Res<String> {
        if self.kind() == Kind::Question {
            return self.rule(format!("Bind variables cannot be used for {what} names"));
        }
        self.name()
    }

    pub(super) fn keyspace_name(&mut self) -> Res<String> {
        self.unbindable_name("keyspace")
    }

    fn qualifier(&mut self) -> Res<Option<String>> {
        if self.kind_at(1) != Kind::Dot {
            return Ok(None);
        }
        let keyspace = self.keyspace_name()?;
        self.skip();
        Ok(Some(keyspace))
    }

    /// `[keyspace.]table`; views and describable indexes too.
    pub(super) fn table_name(&mut self) -> Res<QualifiedName> {
        let keyspace = self.qualifier()?;
        let name = self.unbindable_name("table")?;
        if keyspace.is_none() {
            self.looked_ahead();
        }
        Ok(QualifiedName { keyspace, name })
    }

    /// `[keyspace.]index`.
    pub(super) fn index_name(&mut self) -> Res<QualifiedName> {
        let keyspace = self.qualifier()?;
        Ok(QualifiedName { keyspace, name: self.plain_index_name()? })
    }

    pub(super) fn plain_index_name(&mut self) -> Res<String> {
        self.unbindable_name("index")
    }

    /// `[keyspace.]function`.
    pub(super) fn function_name(&mut self) -> Res<QualifiedName> {
        let keyspace = self.qualifier()?;
        Ok(QualifiedName { keyspace, name: self.plain_function_name()? })
    }

    /// Whether the token that far ahead can name a function.
    pub(super) fn is_function_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Kind::Ident | Kind::QuotedName => true,
            Kind::Keyword(word) => word.names_function(),
            _ => false,
        }
    }

    /// Whether a function call starts that far ahead.
    pub(super) fn is_call_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead + 1) {
            Kind::OpenParen => self.is_function_at(ahead),
            Kind::Dot => {
                (self.is_name_at(ahead) || self.kind_at(ahead) == Kind::Question)
                    && self.is_function_at(ahead + 2)
                    && self.kind_at(ahead + 3) == Kind::OpenParen
            }
            _ => false,
        }
    }

    pub(super) fn plain_function_name(&mut self) -> Res<String> {
        if !self.is_function_at(0) {
            return self.no_viable();
        }
        Ok(self.take_name())
    }

    /// A role's name: an identifier, which folds, or a string, which does not.
    pub(super) fn role_name(&mut self) -> Res<String> {
        match self.kind() {
            Kind::String => self.string(),
            _ => self.unbindable_name("role"),
        }
    }

    /// A user's or identity's name: neither folds, and none may be quoted.
    pub(super) fn unfolded_name(&mut self, refusal: &str) -> Res<String> {
        match self.kind() {
            Kind::String => self.string(),
            Kind::Ident => {
                let name = self.source().to_owned();
                self.skip();
                Ok(name)
            }
            Kind::QuotedName => self.rule(refusal.to_owned()),
            _ => self.no_viable(),
        }
    }

    /// A string literal's content.
    pub(super) fn string(&mut self) -> Res<String> {
        if self.kind() != Kind::String {
            return self.mismatch("STRING_LITERAL");
        }
        let source = self.source();
        let content = if source.starts_with('$') {
            source.get(2..source.len().saturating_sub(2)).unwrap_or("").to_owned()
        } else {
            unquote(source, '\'')
        };
        self.skip();
        Ok(content)
    }

    /// The next token is a keyword that names nothing here unless what follows says so.
    pub(super) fn is_bare(&self, word: K) -> bool {
        self.is(word) && self.kind_at(1) != Kind::Dot
    }
}

/// Takes the quotes off and undoes the doubled ones.
fn unquote(source: &str, quote: char) -> String {
    let inner = source.get(1..source.len().saturating_sub(1)).unwrap_or("");
    if !inner.contains(quote) {
        return inner.to_owned();
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        out.push(c);
        if c == quote {
            rest.next();
        }
    }
    out
}
