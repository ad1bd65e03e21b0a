//! Functions and aggregates.

use super::{K, Parser, Res};
use crate::ast::{CreateAggregate, CreateFunction, DropFunction, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    /// `CREATE [OR REPLACE] word`.
    fn create_or_replace(&mut self, word: K) -> Res<bool> {
        self.expect_word(K::Create)?;
        let or_replace = self.eat_word(K::Or);
        if or_replace {
            self.expect_word(K::Replace)?;
        }
        self.expect_word(word)?;
        Ok(or_replace)
    }

    pub(super) fn create_function(&mut self) -> Res<Statement> {
        let or_replace = self.create_or_replace(K::Function)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arguments = self.paren_list_or_empty(|p| Ok((p.name()?, p.data_type()?)))?;
        let called_on_null_input = self.eat_word(K::Called);
        if !called_on_null_input {
            if !self.is(K::Returns) {
                return self.no_viable();
            }
            self.expect_words(&[K::Returns, K::Null])?;
        }
        self.expect_words(&[K::On, K::Null, K::Input, K::Returns])?;
        let returns = self.data_type()?;
        self.expect_word(K::Language)?;
        if self.kind() != Kind::Ident {
            return self.mismatch("IDENT");
        }
        let language = self.source().to_ascii_lowercase();
        self.skip();
        self.expect_word(K::As)?;
        let body = self.string()?;
        Ok(Statement::CreateFunction(Box::new(CreateFunction {
            name,
            or_replace,
            if_not_exists,
            arguments,
            called_on_null_input,
            returns,
            language,
            body,
        })))
    }

    pub(super) fn create_aggregate(&mut self) -> Res<Statement> {
        let or_replace = self.create_or_replace(K::Aggregate)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arguments = self.paren_list_or_empty(Self::data_type)?;
        self.expect_word(K::Sfunc)?;
        let state_function = self.plain_function_name()?;
        self.expect_word(K::Stype)?;
        let state_type = self.data_type()?;
        let mut final_function = None;
        if self.eat_word(K::Finalfunc) {
            final_function = Some(self.plain_function_name()?);
        }
        let initial = if self.eat_word(K::Initcond) { Some(self.term()?) } else { None };
        Ok(Statement::CreateAggregate(Box::new(CreateAggregate {
            name,
            or_replace,
            if_not_exists,
            arguments,
            state_function,
            state_type,
            final_function,
            initial,
        })))
    }

    pub(super) fn drop_function(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Function])?;
        Ok(Statement::DropFunction(self.dropped_function()?))
    }

    pub(super) fn drop_aggregate(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Aggregate])?;
        Ok(Statement::DropAggregate(self.dropped_function()?))
    }

    fn dropped_function(&mut self) -> Res<DropFunction> {
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let mut arguments = None;
        if self.kind() == Kind::OpenParen {
            arguments = Some(self.paren_list_or_empty(Self::data_type)?);
        }
        Ok(DropFunction { name, if_exists, arguments })
    }
}
