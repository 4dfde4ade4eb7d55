! Copyright 1994 Ada Björk

!> \brief Moves boats by oars.
!! It knows nothing of sails.
module boats
  use, intrinsic :: iso_fortran_env
  use oars, only: pull
  implicit none
  type, public :: boat
    character(len=20) :: name
  end type boat
contains
  ! Rows so many strokes.
  subroutine row(strokes)
    integer, intent(in) :: strokes
    include 'limits.inc'
  end subroutine row

  pure real(kind=8) function drag(speed) result(force)
    real(kind=8), intent(in) :: speed
  end function drag
end module boats

program harbour
  call row(3)
end program harbour
